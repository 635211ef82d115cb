#include "tools/export/page_data.hpp"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <cmath>
#include <ctime>
#include <map>
#include <tuple>
#include <unordered_set>

#include "kcdata/names.hpp"
#include "kcdata/records.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "tools/analysis_text.hpp"
#include "tools/analyze.hpp"
#include "tools/snapshot_text.hpp"
#include "tools/stacks.hpp"
#include "tools/wait_graph.hpp"
#include "tools/wait_text.hpp"

namespace tools {

namespace {

using Blocker = WaitGraph::Blocker;

const char* blocker_name(Blocker blocker) {
    switch (blocker) {
        case Blocker::none:
            break;
        case Blocker::thread:
            return "thread";
        case Blocker::task:
        case Blocker::creator:
            return "task";
        case Blocker::work_queue:
            return "queue";
        case Blocker::port:
            return "object";
    }
    return "";
}

const char* head_name(Diagnosis::Head::Kind kind) {
    switch (kind) {
        case Diagnosis::Head::Kind::thread:
            return "thread";
        case Diagnosis::Head::Kind::task:
            return "task";
        case Diagnosis::Head::Kind::work_queue:
            break;
    }
    return "queue";
}

const char* boost_name(Diagnosis::Inversion::Boost boost) {
    switch (boost) {
        case Diagnosis::Inversion::Boost::none:
            return "not boosted";
        case Diagnosis::Inversion::Boost::partial:
            return "boosted, but not enough";
        case Diagnosis::Inversion::Boost::full:
            return "boosted";
        case Diagnosis::Inversion::Boost::unknown:
            break;
    }
    return "boost unknown";
}

/// What the page colours and counts threads by.
const char* activity_name(const ThreadSnapshot& thread) {
    using namespace kcdata;
    if (!thread.state)
        return "unknown";
    const std::uint32_t state = *thread.state;
    if ((state & SS_TH_IDLE) != 0)
        return "idle";
    if (thread.has(kThreadOnCore))
        return "running";
    if ((state & (SS_TH_TERMINATE | SS_TH_TERMINATE2)) != 0)
        return "terminating";
    if ((state & SS_TH_SUSP) != 0)
        return "suspended";
    if ((state & SS_TH_WAIT) != 0)
        return "waiting";
    return (state & SS_TH_RUN) != 0 ? "runnable" : "unknown";
}

class Writer {
  public:
    Writer(const ExportedCapture& capture, JsonEmitter& json)
        : capture_(capture),
          snapshot_(capture.snapshot),
          graph_(make_wait_graph(snapshot_)),
          diagnosis_(diagnose(graph_)),
          stacks_(snapshot_, capture.symbols),
          json_(json) {
        for (std::size_t i = 0; i < graph_.threads.size(); ++i)
            threads_.push_back({graph_.threads[i].snapshot, graph_.threads[i].task, i});
        // Those of an id that is in the capture twice wait for nothing that is known.
        std::unordered_set<const ThreadSnapshot*> known;
        for (const WaitGraph::Thread& thread : graph_.threads)
            known.insert(thread.snapshot);
        for (std::size_t task = 0; task < snapshot_.tasks.size(); ++task)
            for (const auto* all :
                 {&snapshot_.tasks[task].threads, &snapshot_.tasks[task].unchanged_threads})
                for (const ThreadSnapshot& thread : *all)
                    if (!known.contains(&thread))
                        threads_.push_back({&thread, task, WaitGraph::none});
    }

    void run() {
        json_.begin_object();
        json_.text("place", capture_.place);
        json_.key("problems");
        json_.begin_array();
        for (const auto* lines : {&capture_.problems, &snapshot_.problems})
            for (const std::string& line : *lines)
                json_.value(line);
        json_.end_array();
        write_facts();
        json_.list("tasks", graph_.tasks, [this](const WaitGraph::Task& task) { write(task); });
        json_.list("threads", threads_, [this](const Thread& thread) { write(thread); });
        // Behind the threads, whose stacks they come from.
        json_.list("frames", frames_, [this](const Entry& entry) { write(entry); });
        json_.list("images", stacks_.images().all(),
                   [this](const Images::Image& image) { write(image); });
        write_graph();
        write_latency();
        json_.end_object();
    }

  private:
    struct Thread {
        const ThreadSnapshot* snapshot;
        std::size_t task;
        std::size_t graph_index;
    };

    /// An entry of a stack with all that is inlined there.
    struct Entry {
        std::vector<StackFrame> functions{};
    };

    void indices(std::string_view key, const std::vector<std::size_t>& elements) {
        json_.list(key, elements, [this](std::size_t index) { json_.value(index); });
    }
    void some_text(std::string_view key, std::string_view value) {
        if (!value.empty())
            json_.text(key, value);
    }
    /// Only what is true is told.
    void flag(std::string_view key, bool value) {
        if (value)
            json_.truth(key, true);
    }
    void nanoseconds(std::string_view key, std::optional<double> value) {
        if (value)
            json_.number(key, static_cast<std::uint64_t>(std::llround(std::min(*value, 9e18))));
    }
    void ticks(std::string_view key, std::optional<std::uint64_t> time) {
        nanoseconds(key, snapshot_.nanoseconds(time));
    }
    /// How long before the capture `time` was, if that is known and in the past.
    void since(std::string_view key, std::optional<std::uint64_t> time) {
        const auto now = snapshot_.absolute_time;
        if (now && time && *time != 0 && *time <= *now)
            ticks(key, *now - *time);
    }
    void microseconds(std::string_view key, std::optional<std::uint64_t> value) {
        if (value)
            nanoseconds(key, static_cast<double>(*value) * 1e3);
    }
    void names(std::string_view key, const kcdata::ValueNames* known, std::uint64_t value) {
        json_.key(key);
        json_.begin_array();
        if (known != nullptr) {
            const std::uint64_t rest = known->for_each_name(
                value, [this](const kcdata::ValueName& name, std::uint64_t part) {
                    json_.value(part == name.value ? std::string(name.name)
                                                   : fmt::format("{}={:#x}", name.name, part));
                });
            if (rest != 0)
                json_.value(fmt::format("{:#x}", rest));
        }
        json_.end_array();
    }
    /// The name of data or code at an address of the kernel.
    std::optional<Symbol> symbol(std::string_view key, std::uint64_t place) {
        if (capture_.symbols == nullptr || place == 0)
            return std::nullopt;
        const auto found = capture_.symbols->symbol(place);
        if (found)
            json_.text(key, found->offset == 0
                                ? short_name(found->name)
                                : fmt::format("{}+{:#x}", short_name(found->name), found->offset));
        return found;
    }

    void write_facts() {
        const Snapshot& s = snapshot_;
        json_.key("facts");
        json_.begin_object();
        some_text("system", s.os_version.value_or(""));
        some_text("build", s.os_build_version.value_or(""));
        if (s.boot_args)
            json_.text("boot_args", *s.boot_args);
        // A machine whose clock was not set counts from the beginning of 1970.
        constexpr std::uint64_t clock_was_set = 1'000'000'000'000'000;
        if (s.usecs_since_epoch && *s.usecs_since_epoch >= clock_was_set)
            json_.text(
                "taken",
                fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06} UTC",
                            fmt::gmtime(static_cast<std::time_t>(*s.usecs_since_epoch / 1'000'000)),
                            *s.usecs_since_epoch % 1'000'000));
        if (s.absolute_time)
            json_.text("absolute_time", fmt::format("{}", *s.absolute_time));
        ticks("uptime", s.absolute_time);
        flag("panic", (s.in_flags.value_or(0) & kcdata::STACKSHOT_FROM_PANIC) != 0);
        flag("delta", s.delta);
        if (s.in_flags)
            names("flags", kcdata::find_value_names("stackshot_in_flags"), *s.in_flags);
        if (s.kernel) {
            json_.address("kernel_address", s.kernel->address);
            json_.text("kernel_uuid", uuid_text(s.kernel->uuid));
        }
        some_text("symbols", capture_.symbols_from);
        if (s.memory && s.page_size) {
            const std::uint64_t page = *s.page_size;
            json_.number("page_size", page);
            json_.number("free", s.memory->free_pages * page);
            json_.number("active", s.memory->active_pages * page);
            json_.number("wired", s.memory->wired_pages * page);
        }
        json_.list("cpus", s.collecting_cpus,
                   [this](std::int32_t cpu) { json_.value(static_cast<std::int64_t>(cpu)); });
        if (s.absent_cpus) {
            json_.key("absent_cpus");
            json_.begin_array();
            for (std::uint64_t cpu = 0; cpu < 64; ++cpu)
                if ((*s.absent_cpus >> cpu & 1) != 0)
                    json_.value(cpu);
            json_.end_array();
        }
        if (s.tasks_count)
            json_.number("tasks_count", *s.tasks_count);
        if (s.threads_count)
            json_.number("threads_count", *s.threads_count);
        ticks("stopped", s.duration);
        // 0 is what a capture says that did not measure it.
        if (s.duration_outer.value_or(0) != 0)
            ticks("in_all", s.duration_outer);
        if (s.duration_prior.value_or(0) != 0)
            ticks("tries_before", s.duration_prior);
        if (s.tries)
            json_.number("tries", *s.tries);
        json_.number("bytes", capture_.buffer.size());
        json_.end_object();
    }

    void write(const WaitGraph::Task& task) {
        json_.begin_object();
        if (task.pid)
            json_.signed_number("pid", *task.pid);
        if (const TaskSnapshot* const snapshot = task.snapshot) {
            some_text("name", snapshot->name);
            flag("unchanged", snapshot->unchanged);
            const std::uint64_t flags = snapshot->ss_flags.value_or(0);
            flag("terminated", (flags & kcdata::kTerminatedSnapshot) != 0);
            flag("suspended", (flags & kcdata::kPidSuspended) != 0);
            if (const auto& latency = snapshot->latency) {
                ticks("setup_time", latency->setup_latency);
                ticks("snapshot_time", latency->cur_tsnap_latency);
                ticks("threads_time", latency->task_thread_count_loop_latency +
                                          latency->task_thread_data_loop_latency);
            }
        } else {
            flag("absent", true);
        }
        json_.end_object();
    }

    void write(const Thread& thread) {
        json_.begin_object();
        const bool in_graph = thread.graph_index != WaitGraph::none;
        json_.text("id", fmt::format("{}", in_graph ? graph_.threads[thread.graph_index].id
                                                    : thread.snapshot->id));
        if (thread.task != WaitGraph::none)
            json_.number("task", thread.task);
        if (thread.snapshot != nullptr)
            write(*thread.snapshot, snapshot_.tasks[thread.task]);
        else
            flag("absent", true);
        if (in_graph) {
            json_.text("doing", activity_text(graph_, thread.graph_index));
            if (diagnosis_.deadlock_of[thread.graph_index] != WaitGraph::none)
                json_.number("deadlock", diagnosis_.deadlock_of[thread.graph_index]);
            if (const WaitGraph::Wait* const wait = graph_.wait_of(thread.graph_index))
                write(*wait);
        }
        json_.end_object();
    }

    void write(const ThreadSnapshot& thread, const TaskSnapshot& task) {
        some_text("name", thread.name);
        json_.text("activity", activity_name(thread));
        flag("unchanged", thread.unchanged);
        if (thread.state)
            names("state",
                  kcdata::field_value_names(kcdata::STACKSHOT_KCTYPE_THREAD_SNAPSHOT, "ths_state"),
                  *thread.state);
        if (thread.last_processor)
            json_.number("cpu", *thread.last_processor);
        flag("on_core", thread.has(kcdata::kThreadOnCore));
        flag("on_absent_cpu", thread.on_absent_cpu);
        if (thread.base_priority)
            json_.signed_number("base_priority", *thread.base_priority);
        if (thread.sched_priority)
            json_.signed_number("sched_priority", *thread.sched_priority);
        if (thread.user_usec || thread.system_usec) {
            microseconds("user", thread.user_usec);
            microseconds("system", thread.system_usec);
        } else {
            ticks("user", thread.user_time);
            ticks("system", thread.system_time);
        }
        microseconds("runnable", thread.runnable_usec);
        const bool waiting = (thread.state.value_or(0) & kcdata::SS_TH_WAIT) != 0;
        if (!thread.has(kcdata::kThreadOnCore))
            since("since", waiting ? thread.last_run_time : thread.last_made_runnable_time);
        if (thread.wait_event.value_or(0) != 0) {
            json_.address("event", *thread.wait_event);
            if (const auto found = symbol("event_symbol", *thread.wait_event))
                flag("event_is_code", found->function);
        }
        some_text("queue", thread.dispatch_queue_label);
        flag("cut",
             thread.has(kcdata::kThreadTruncKernBT) || thread.has(kcdata::kThreadTruncatedBT));
        if (thread.kernel_stack)
            write_stack("kernel", stacks_.kernel_stack(thread));
        if (thread.user_stack)
            write_stack("user_stack", stacks_.user_stack(task, thread));
        if (const auto& latency = thread.latency) {
            ticks("stack_time", latency->kernel_stack_latency + latency->user_stack_latency);
            ticks("facts_time", latency->cur_thsnap1_latency + latency->dispatch_serial_latency +
                                    latency->dispatch_label_latency + latency->cur_thsnap2_latency +
                                    latency->thread_name_latency + latency->sur_times_latency +
                                    latency->misc_latency);
        }
    }

    /// The entries by their index in "frames": most stacks share most of them.
    void write_stack(std::string_view key, const std::vector<StackFrame>& stack) {
        json_.key(key);
        json_.begin_array();
        for (std::size_t first = 0; first < stack.size();) {
            std::size_t last = first + 1;
            while (last < stack.size() && !stack[last].index)
                ++last;
            json_.value(entry(std::span(stack).subspan(first, last - first)));
            first = last;
        }
        json_.end_array();
    }

    std::size_t entry(std::span<const StackFrame> functions) {
        // One address can be two entries: where a thread stands, and where it returns to.
        const StackFrame& outer = functions.back();
        const auto [found, is_new] =
            entries_.try_emplace({outer.address, functions.front().function, functions.front().line,
                                  outer.image.value_or(SIZE_MAX)},
                                 frames_.size());
        if (is_new)
            frames_.push_back({{functions.begin(), functions.end()}});
        return found->second;
    }

    void write(const Entry& entry) {
        const StackFrame& outer = entry.functions.back();
        json_.begin_object();
        json_.address("address", outer.address);
        // Pairs: function and place, the innermost first.
        json_.key("functions");
        json_.begin_array();
        for (const StackFrame& function : entry.functions) {
            if (function.function.empty())
                continue;
            json_.value(function.function);
            json_.value(function.place());
        }
        json_.end_array();
        flag("exception", outer.exception_entry);
        if (outer.image) {
            json_.number("image", *outer.image);
            json_.address("offset",
                          outer.address - stacks_.images().all()[*outer.image].info.address);
        }
        json_.end_object();
    }

    void write(const Images::Image& image) {
        constexpr const char* kinds[] = {"process", "shared cache", "image in the shared cache",
                                         "kernel"};
        json_.begin_object();
        json_.text("kind", kinds[static_cast<std::size_t>(image.kind)]);
        json_.address("address", image.info.address);
        json_.text("uuid", uuid_text(image.info.uuid));
        json_.end_object();
    }

    void write(const WaitGraph::Wait& wait) {
        json_.key("wait");
        json_.begin_object();
        json_.text("verb", wait.type != nullptr ? wait.type->waits : "waits for");
        if (wait.object != WaitGraph::none)
            json_.number("object", wait.object);
        if (wait.blocker != Blocker::none) {
            json_.text("blocker", blocker_name(wait.blocker));
            json_.number("by", wait.blocked_by);
            some_text("joint", wait.type != nullptr ? wait.type->joint : "pushing");
        }
        flag("creator", wait.blocker == Blocker::creator);
        flag("loose", wait.blocker == Blocker::creator || wait.any_of_task || wait.changing);
        json_.end_object();
    }

    void write_graph() {
        json_.list("objects", graph_.objects, [this](const WaitGraph::Object& object) {
            json_.begin_object();
            json_.text("kind", object.kind);
            json_.address("address", object.address);
            if (object.task != WaitGraph::none)
                json_.number("task", object.task);
            if (object.label != nullptr)
                some_text("label", object.label->name);
            if (object.task == WaitGraph::none)
                symbol("symbol", object.address);
            json_.end_object();
        });
        json_.list("queues", graph_.work_queues,
                   [this](const WaitGraph::WorkQueue& queue) { json_.hexadecimal(queue.address); });
        json_.list("deadlocks", diagnosis_.deadlocks, [this](const Diagnosis::Deadlock& deadlock) {
            json_.begin_object();
            indices("threads", deadlock.threads);
            json_.number("behind", deadlock.behind);
            json_.end_object();
        });
        json_.list("open_cycles", diagnosis_.open_cycles,
                   [this](const Diagnosis::OpenCycle& cycle) {
                       json_.begin_object();
                       indices("threads", cycle.threads);
                       indices("may_act", cycle.may_act);
                       json_.end_object();
                   });
        json_.list("heads", diagnosis_.heads, [this](const Diagnosis::Head& head) {
            json_.begin_object();
            json_.text("kind", head_name(head.kind));
            json_.number("index", head.index);
            indices("direct", head.direct);
            json_.number("behind", head.behind);
            json_.end_object();
        });
        json_.list("inversions", diagnosis_.inversions,
                   [this](const Diagnosis::Inversion& inversion) {
                       json_.begin_object();
                       json_.number("owner", inversion.owner);
                       json_.number("waiter", inversion.waiter);
                       flag("direct", inversion.direct);
                       flag("runnable", inversion.runnable);
                       json_.text("boost", boost_name(inversion.boost));
                       json_.end_object();
                   });
        json_.list("unknown", unknown_lines(graph_),
                   [this](const auto& line) { json_.value(line); });
        flag("complete", graph_.complete);
        flag("no_wait_infos", graph_.no_wait_infos);
    }

    void write_latency() {
        if (!snapshot_.latency && snapshot_.cpu_latencies.empty())
            return;
        json_.key("latency");
        json_.begin_object();
        if (const auto& latency = snapshot_.latency) {
            ticks("setup", latency->setup_latency_mt);
            if (latency->latency_version >= 2) {
                ticks("iteration", latency->total_task_iteration_latency_mt);
                ticks("queue_building", latency->task_queue_building_latency_mt);
                ticks("cpu_wait", latency->cpu_wait_latency_mt);
                json_.signed_number("main_cpu", latency->main_cpu_number);
                json_.signed_number("calling_cpu", latency->calling_cpu_number);
                json_.number("buffer_size", latency->buffer_size);
                json_.number("buffer_used", latency->buffer_used);
            }
        }
        json_.list("cpus", snapshot_.cpu_latencies,
                   [this](const kcdata::stackshot_latency_cpu& cpu) {
                       json_.begin_object();
                       json_.signed_number("cpu", cpu.cpu_number);
                       ticks("init", cpu.init_latency_mt);
                       ticks("queue", cpu.workqueue_latency_mt);
                       ticks("total", cpu.total_latency_mt);
                       json_.number("tasks", cpu.tasks_processed);
                       json_.number("threads", cpu.threads_processed);
                       json_.number("buffer", cpu.total_buf);
                       json_.number("borrowed", cpu.intercluster_buf_used);
                       json_.end_object();
                   });
        json_.end_object();
    }

    const ExportedCapture& capture_;
    const Snapshot& snapshot_;
    const WaitGraph graph_;
    const Diagnosis diagnosis_;
    const Stacks stacks_;
    JsonEmitter& json_;
    std::vector<Thread> threads_{};
    std::map<std::tuple<std::uint64_t, std::string, unsigned, std::size_t>, std::size_t> entries_{};
    std::vector<Entry> frames_{};
};

}  // namespace

void write_page_data(const ExportedCapture& capture, JsonEmitter& json) {
    Writer(capture, json).run();
}

}  // namespace tools
