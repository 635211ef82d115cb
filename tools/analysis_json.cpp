#include "tools/analysis_json.hpp"

#include <fmt/core.h>

#include "kcdata/names.hpp"
#include "kcdata/records.hpp"
#include "tools/analysis_text.hpp"
#include "tools/wait_text.hpp"

namespace tools {

namespace {

using Blocker = WaitGraph::Blocker;
using Unknown = WaitGraph::Unknown;

const char* blocker_name(Blocker blocker) {
    switch (blocker) {
        case Blocker::none:
            return "none";
        case Blocker::thread:
            return "thread";
        case Blocker::task:
            return "task";
        case Blocker::creator:
            return "creator";
        case Blocker::work_queue:
            return "work_queue";
        case Blocker::port:
            return "port";
    }
    return "";
}

const char* unknown_name(Unknown unknown) {
    switch (unknown) {
        case Unknown::no:
            return "";
        case Unknown::not_recorded:
            return "not_recorded";
        case Unknown::kernel:
            return "kernel";
        case Unknown::port_locked:
            return "port_locked";
        case Unknown::port_set_locked:
            return "port_set_locked";
        case Unknown::in_transit:
            return "in_transit";
        case Unknown::mutex_spin:
            return "mutex_spin";
        case Unknown::thread_requested:
            return "thread_requested";
        case Unknown::suspended:
            return "suspended";
        case Unknown::other_special:
            return "other_special";
        case Unknown::any_child:
            return "any_child";
        case Unknown::process_group:
            return "process_group";
        case Unknown::unknown_type:
            return "unknown_type";
        case Unknown::not_waiting:
            return "not_waiting";
    }
    return "";
}

const char* boost_name(Diagnosis::Inversion::Boost boost) {
    switch (boost) {
        case Diagnosis::Inversion::Boost::none:
            return "none";
        case Diagnosis::Inversion::Boost::partial:
            return "partial";
        case Diagnosis::Inversion::Boost::full:
            return "full";
        case Diagnosis::Inversion::Boost::unknown:
            break;
    }
    return "unknown";
}

class Writer {
  public:
    Writer(const WaitGraph& graph, const Diagnosis& diagnosis, JsonEmitter& json)
        : graph_(graph), diagnosis_(diagnosis), json_(json) {}

    void run() {
        json_.begin_object();
        json_.list("deadlocks", diagnosis_.deadlocks, [this](const Diagnosis::Deadlock& deadlock) {
            json_.begin_object();
            ids("threads", deadlock.threads);
            json_.number("behind", deadlock.behind);
            json_.end_object();
        });
        json_.list("open_cycles", diagnosis_.open_cycles,
                   [this](const Diagnosis::OpenCycle& cycle) {
                       json_.begin_object();
                       ids("threads", cycle.threads);
                       ids("may_act", cycle.may_act);
                       json_.end_object();
                   });
        json_.list("heads", diagnosis_.heads, [this](const Diagnosis::Head& head) { write(head); });
        json_.list("inversions", diagnosis_.inversions,
                   [this](const Diagnosis::Inversion& inversion) {
                       json_.begin_object();
                       json_.number("owner", graph_.threads[inversion.owner].id);
                       json_.number("waiter", graph_.threads[inversion.waiter].id);
                       json_.truth("direct", inversion.direct);
                       json_.text("boost", boost_name(inversion.boost));
                       json_.truth("runnable", inversion.runnable);
                       json_.end_object();
                   });
        threads_and_tasks();
        json_.list("unknown", unknown_lines(graph_),
                   [this](const std::string& line) { json_.value(line); });
        json_.truth("complete", graph_.complete);
        json_.end_object();
    }

  private:
    void ids(std::string_view key, const std::vector<std::size_t>& threads) {
        json_.list(key, threads,
                   [this](std::size_t thread) { json_.value(graph_.threads[thread].id); });
    }
    void pid(std::string_view key, std::size_t task) {
        if (task != WaitGraph::none && graph_.tasks[task].pid)
            json_.signed_number(key, *graph_.tasks[task].pid);
    }

    void write(const Diagnosis::Head& head) {
        json_.begin_object();
        switch (head.kind) {
            case Diagnosis::Head::Kind::thread:
                json_.text("kind", "thread");
                json_.number("id", graph_.threads[head.index].id);
                break;
            case Diagnosis::Head::Kind::task:
                json_.text("kind", "task");
                pid("pid", head.index);
                break;
            case Diagnosis::Head::Kind::work_queue:
                json_.text("kind", "work_queue");
                json_.address("address", graph_.work_queues[head.index].address);
                break;
        }
        ids("direct", head.direct);
        json_.number("behind", head.behind);
        json_.end_object();
    }

    void threads_and_tasks() {
        std::vector<bool> thread_shown(graph_.threads.size(), false);
        std::vector<bool> task_shown(graph_.tasks.size(), false);
        for (const WaitGraph::Wait& wait : graph_.waits) {
            thread_shown[wait.thread] = true;
            if (wait.blocker == Blocker::thread)
                thread_shown[wait.blocked_by] = true;
            if (wait.blocker == Blocker::task || wait.blocker == Blocker::creator)
                task_shown[wait.blocked_by] = true;
        }
        json_.key("threads");
        json_.begin_array();
        for (std::size_t thread = 0; thread < graph_.threads.size(); ++thread) {
            if (!thread_shown[thread])
                continue;
            if (graph_.threads[thread].task != WaitGraph::none)
                task_shown[graph_.threads[thread].task] = true;
            write_thread(thread);
        }
        json_.end_array();
        json_.key("tasks");
        json_.begin_array();
        for (std::size_t task = 0; task < graph_.tasks.size(); ++task)
            if (task_shown[task]) {
                json_.begin_object();
                pid("pid", task);
                const TaskSnapshot* const snapshot = graph_.tasks[task].snapshot;
                if (snapshot != nullptr)
                    json_.text("name", snapshot->name);
                json_.truth("in_capture", snapshot != nullptr);
                json_.end_object();
            }
        json_.end_array();
    }

    void write_thread(std::size_t index) {
        const WaitGraph::Thread& thread = graph_.threads[index];
        json_.begin_object();
        json_.number("id", thread.id);
        json_.truth("in_capture", thread.snapshot != nullptr);
        pid("pid", thread.task);
        if (const ThreadSnapshot* const snapshot = thread.snapshot) {
            if (!snapshot->name.empty())
                json_.text("name", snapshot->name);
            if (snapshot->state)
                json_.address("state", *snapshot->state);
            json_.truth("on_core", snapshot->has(kcdata::kThreadOnCore));
            if (snapshot->base_priority)
                json_.signed_number("base_priority", *snapshot->base_priority);
            if (snapshot->sched_priority)
                json_.signed_number("sched_priority", *snapshot->sched_priority);
        }
        if (diagnosis_.deadlock_of[index] != WaitGraph::none)
            json_.number("deadlock", diagnosis_.deadlock_of[index]);
        json_.text("activity_text", activity_text(graph_, index));
        if (const WaitGraph::Wait* const wait = graph_.wait_of(index)) {
            json_.key("wait");
            write(*wait);
        }
        json_.end_object();
    }

    void write(const WaitGraph::Wait& wait) {
        json_.begin_object();
        const auto* const names =
            kcdata::field_value_names(kcdata::STACKSHOT_KCTYPE_THREAD_WAITINFO, "wait_type");
        std::string name = fmt::format("{:#x}", wait.info.wait_type);
        names->for_each_name(wait.info.wait_type, [&](const kcdata::ValueName& each,
                                                      std::uint64_t) { name = each.name; });
        json_.text("type", name);
        if (wait.object != WaitGraph::none) {
            const WaitGraph::Object& object = graph_.objects[wait.object];
            json_.key("object");
            json_.begin_object();
            json_.text("kind", object.kind);
            json_.address("address", object.address);
            if (object.label != nullptr)
                json_.text("label", object.label->name);
            json_.end_object();
        }
        json_.address("owner", wait.info.owner);
        json_.text("blocker", blocker_name(wait.blocker));
        switch (wait.blocker) {
            case Blocker::none:
                break;
            case Blocker::thread:
                json_.number("blocker_thread", graph_.threads[wait.blocked_by].id);
                break;
            case Blocker::task:
            case Blocker::creator:
                pid("blocker_pid", wait.blocked_by);
                break;
            case Blocker::work_queue:
                json_.address("blocker_address", graph_.work_queues[wait.blocked_by].address);
                break;
            case Blocker::port:
                json_.address("blocker_address", graph_.objects[wait.blocked_by].address);
                break;
        }
        json_.truth("by_turnstile", wait.by_turnstile);
        json_.truth("any_of_task", wait.any_of_task);
        json_.truth("changing", wait.changing);
        if (wait.unknown != Unknown::no)
            json_.text("unknown", unknown_name(wait.unknown));
        if (wait.turnstile) {
            json_.key("turnstile");
            json_.begin_object();
            json_.address("flags", wait.turnstile->turnstile_flags);
            json_.address("context", wait.turnstile->turnstile_context);
            json_.number("hops", wait.turnstile->number_of_hops);
            json_.number("priority", wait.turnstile->turnstile_priority);
            json_.end_object();
        }
        json_.end_object();
    }

    const WaitGraph& graph_;
    const Diagnosis& diagnosis_;
    JsonEmitter& json_;
};

}  // namespace

void write_analysis(const WaitGraph& graph, const Diagnosis& diagnosis, JsonEmitter& json) {
    Writer(graph, diagnosis, json).run();
}

}  // namespace tools
