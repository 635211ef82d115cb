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
        text("place", capture_.place);
        json_.key("problems");
        json_.begin_array();
        for (const auto* lines : {&capture_.problems, &snapshot_.problems})
            for (const std::string& line : *lines)
                json_.value(line);
        json_.end_array();
        write_facts();
        list("tasks", graph_.tasks, [this](const WaitGraph::Task& task) { write(task); });
        list("threads", threads_, [this](const Thread& thread) { write(thread); });
        // Behind the threads, whose stacks they come from.
        list("frames", frames_, [this](const Entry& entry) { write(entry); });
        list("images", stacks_.images().all(),
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

    template <typename Elements, typename Write>
    void list(std::string_view key, const Elements& elements, Write write) {
        json_.key(key);
        json_.begin_array();
        for (const auto& element : elements)
            write(element);
        json_.end_array();
    }
    void indices(std::string_view key, const std::vector<std::size_t>& elements) {
        list(key, elements, [this](std::size_t index) { json_.value(index); });
    }
    void text(std::string_view key, std::string_view value) {
        json_.key(key);
        json_.value(value);
    }
    void some_text(std::string_view key, std::string_view value) {
        if (!value.empty())
            text(key, value);
    }
    void number(std::string_view key, std::uint64_t value) {
        json_.key(key);
        json_.value(value);
    }
    void signed_number(std::string_view key, std::int64_t value) {
        json_.key(key);
        json_.value(value);
    }
    void address(std::string_view key, std::uint64_t value) {
        json_.key(key);
        json_.hexadecimal(value);
    }
    /// Only what is true is told.
    void truth(std::string_view key, bool value) {
        if (!value)
            return;
        json_.key(key);
        json_.boolean(true);
    }
    void nanoseconds(std::string_view key, std::optional<double> value) {
        if (value)
            number(key, static_cast<std::uint64_t>(std::llround(std::min(*value, 9e18))));
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
            text(key, found->offset == 0
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
            text("boot_args", *s.boot_args);
        // A machine whose clock was not set counts from the beginning of 1970.
        constexpr std::uint64_t clock_was_set = 1'000'000'000'000'000;
        if (s.usecs_since_epoch && *s.usecs_since_epoch >= clock_was_set)
            text(
                "taken",
                fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06} UTC",
                            fmt::gmtime(static_cast<std::time_t>(*s.usecs_since_epoch / 1'000'000)),
                            *s.usecs_since_epoch % 1'000'000));
        if (s.absolute_time)
            text("absolute_time", fmt::format("{}", *s.absolute_time));
        ticks("uptime", s.absolute_time);
        truth("panic", (s.in_flags.value_or(0) & kcdata::STACKSHOT_FROM_PANIC) != 0);
        truth("delta", s.delta);
        if (s.in_flags)
            names("flags", kcdata::find_value_names("stackshot_in_flags"), *s.in_flags);
        if (s.kernel) {
            address("kernel_address", s.kernel->address);
            text("kernel_uuid", uuid_text(s.kernel->uuid));
        }
        some_text("symbols", capture_.symbols_from);
        if (s.memory && s.page_size) {
            const std::uint64_t page = *s.page_size;
            number("page_size", page);
            number("free", s.memory->free_pages * page);
            number("active", s.memory->active_pages * page);
            number("wired", s.memory->wired_pages * page);
        }
        list("cpus", s.collecting_cpus,
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
            number("tasks_count", *s.tasks_count);
        if (s.threads_count)
            number("threads_count", *s.threads_count);
        ticks("stopped", s.duration);
        // 0 is what a capture says that did not measure it.
        if (s.duration_outer.value_or(0) != 0)
            ticks("in_all", s.duration_outer);
        if (s.duration_prior.value_or(0) != 0)
            ticks("tries_before", s.duration_prior);
        if (s.tries)
            number("tries", *s.tries);
        number("bytes", capture_.buffer.size());
        json_.end_object();
    }

    void write(const WaitGraph::Task& task) {
        json_.begin_object();
        if (task.pid)
            signed_number("pid", *task.pid);
        if (const TaskSnapshot* const snapshot = task.snapshot) {
            some_text("name", snapshot->name);
            truth("unchanged", snapshot->unchanged);
            const std::uint64_t flags = snapshot->ss_flags.value_or(0);
            truth("terminated", (flags & kcdata::kTerminatedSnapshot) != 0);
            truth("suspended", (flags & kcdata::kPidSuspended) != 0);
            if (const auto& latency = snapshot->latency) {
                ticks("setup_time", latency->setup_latency);
                ticks("snapshot_time", latency->cur_tsnap_latency);
                ticks("threads_time", latency->task_thread_count_loop_latency +
                                          latency->task_thread_data_loop_latency);
            }
        } else {
            truth("absent", true);
        }
        json_.end_object();
    }

    void write(const Thread& thread) {
        json_.begin_object();
        const bool in_graph = thread.graph_index != WaitGraph::none;
        text("id", fmt::format("{}", in_graph ? graph_.threads[thread.graph_index].id
                                              : thread.snapshot->id));
        if (thread.task != WaitGraph::none)
            number("task", thread.task);
        if (thread.snapshot != nullptr)
            write(*thread.snapshot, snapshot_.tasks[thread.task]);
        else
            truth("absent", true);
        if (in_graph) {
            text("doing", activity_text(graph_, thread.graph_index));
            if (diagnosis_.deadlock_of[thread.graph_index] != WaitGraph::none)
                number("deadlock", diagnosis_.deadlock_of[thread.graph_index]);
            if (const WaitGraph::Wait* const wait = graph_.wait_of(thread.graph_index))
                write(*wait);
        }
        json_.end_object();
    }

    void write(const ThreadSnapshot& thread, const TaskSnapshot& task) {
        some_text("name", thread.name);
        text("activity", activity_name(thread));
        truth("unchanged", thread.unchanged);
        if (thread.state)
            names("state",
                  kcdata::field_value_names(kcdata::STACKSHOT_KCTYPE_THREAD_SNAPSHOT, "ths_state"),
                  *thread.state);
        if (thread.last_processor)
            number("cpu", *thread.last_processor);
        truth("on_core", thread.has(kcdata::kThreadOnCore));
        truth("on_absent_cpu", thread.on_absent_cpu);
        if (thread.base_priority)
            signed_number("base_priority", *thread.base_priority);
        if (thread.sched_priority)
            signed_number("sched_priority", *thread.sched_priority);
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
            address("event", *thread.wait_event);
            if (const auto found = symbol("event_symbol", *thread.wait_event))
                truth("event_is_code", found->function);
        }
        some_text("queue", thread.dispatch_queue_label);
        truth("cut",
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
        address("address", outer.address);
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
        truth("exception", outer.exception_entry);
        if (outer.image) {
            number("image", *outer.image);
            address("offset", outer.address - stacks_.images().all()[*outer.image].info.address);
        }
        json_.end_object();
    }

    void write(const Images::Image& image) {
        constexpr const char* kinds[] = {"process", "shared cache", "image in the shared cache",
                                         "kernel"};
        json_.begin_object();
        text("kind", kinds[static_cast<std::size_t>(image.kind)]);
        address("address", image.info.address);
        text("uuid", uuid_text(image.info.uuid));
        json_.end_object();
    }

    void write(const WaitGraph::Wait& wait) {
        json_.key("wait");
        json_.begin_object();
        text("verb", wait.type != nullptr ? wait.type->waits : "waits for");
        if (wait.object != WaitGraph::none)
            number("object", wait.object);
        if (wait.blocker != Blocker::none) {
            text("blocker", blocker_name(wait.blocker));
            number("by", wait.blocked_by);
            some_text("joint", wait.type != nullptr ? wait.type->joint : "pushing");
        }
        truth("creator", wait.blocker == Blocker::creator);
        truth("loose", wait.blocker == Blocker::creator || wait.any_of_task || wait.changing);
        json_.end_object();
    }

    void write_graph() {
        list("objects", graph_.objects, [this](const WaitGraph::Object& object) {
            json_.begin_object();
            text("kind", object.kind);
            address("address", object.address);
            if (object.task != WaitGraph::none)
                number("task", object.task);
            if (object.label != nullptr)
                some_text("label", object.label->name);
            if (object.task == WaitGraph::none)
                symbol("symbol", object.address);
            json_.end_object();
        });
        list("queues", graph_.work_queues,
             [this](const WaitGraph::WorkQueue& queue) { json_.hexadecimal(queue.address); });
        list("deadlocks", diagnosis_.deadlocks, [this](const Diagnosis::Deadlock& deadlock) {
            json_.begin_object();
            indices("threads", deadlock.threads);
            number("behind", deadlock.behind);
            json_.end_object();
        });
        list("open_cycles", diagnosis_.open_cycles, [this](const Diagnosis::OpenCycle& cycle) {
            json_.begin_object();
            indices("threads", cycle.threads);
            indices("may_act", cycle.may_act);
            json_.end_object();
        });
        list("heads", diagnosis_.heads, [this](const Diagnosis::Head& head) {
            json_.begin_object();
            text("kind", head_name(head.kind));
            number("index", head.index);
            indices("direct", head.direct);
            number("behind", head.behind);
            json_.end_object();
        });
        list("inversions", diagnosis_.inversions, [this](const Diagnosis::Inversion& inversion) {
            json_.begin_object();
            number("owner", inversion.owner);
            number("waiter", inversion.waiter);
            truth("direct", inversion.direct);
            truth("runnable", inversion.runnable);
            text("boost", boost_name(inversion.boost));
            json_.end_object();
        });
        list("unknown", unknown_lines(graph_), [this](const auto& line) { json_.value(line); });
        truth("complete", graph_.complete);
        truth("no_wait_infos", graph_.no_wait_infos);
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
                signed_number("main_cpu", latency->main_cpu_number);
                signed_number("calling_cpu", latency->calling_cpu_number);
                number("buffer_size", latency->buffer_size);
                number("buffer_used", latency->buffer_used);
            }
        }
        list("cpus", snapshot_.cpu_latencies, [this](const kcdata::stackshot_latency_cpu& cpu) {
            json_.begin_object();
            signed_number("cpu", cpu.cpu_number);
            ticks("init", cpu.init_latency_mt);
            ticks("queue", cpu.workqueue_latency_mt);
            ticks("total", cpu.total_latency_mt);
            number("tasks", cpu.tasks_processed);
            number("threads", cpu.threads_processed);
            number("buffer", cpu.total_buf);
            number("borrowed", cpu.intercluster_buf_used);
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
