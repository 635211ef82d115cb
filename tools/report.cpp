#include "tools/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kcdata/records.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "tools/analysis_text.hpp"
#include "tools/analyze.hpp"
#include "tools/append.hpp"
#include "tools/printable.hpp"
#include "tools/snapshot_text.hpp"
#include "tools/stacks.hpp"
#include "tools/wait_graph.hpp"
#include "tools/wait_text.hpp"

namespace tools {

namespace {

constexpr const char* unknown = "unknown";

std::string microseconds_text(std::optional<std::uint64_t> usec) {
    if (!usec)
        return unknown;
    return *usec == 0 ? "0 s" : time_text(static_cast<double>(*usec) * 1e3);
}

/// "0-3, 7" of ascending numbers.
std::string ranges(const std::vector<std::uint64_t>& numbers) {
    std::string text;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
            ++last;
        if (!text.empty())
            text += ", ";
        text += last == i ? fmt::format("{}", numbers[i])
                          : fmt::format("{}-{}", numbers[i], numbers[last]);
        i = last + 1;
    }
    return text;
}

std::string size_text(double bytes) {
    return bytes < 10.0 * 1024 * 1024 ? fmt::format("{:.0f} KiB", bytes / 1024)
                                      : fmt::format("{:.1f} MiB", bytes / (1024 * 1024));
}

class Report {
  public:
    Report(const Snapshot& snapshot, Symbolizer* symbols, const ReportOptions& options)
        : snapshot_(snapshot),
          graph_(make_wait_graph(snapshot)),
          stacks_(snapshot, symbols),
          symbols_(symbols),
          options_(options) {
        for (const TaskSnapshot& task : snapshot.tasks)
            for (const ThreadSnapshot& thread : task.threads)
                name_width_ = std::max(name_width_, thread.name.size());
    }

    std::string run() {
        header();
        cpus();
        deadlocks();
        for (const TaskSnapshot& task : snapshot_.tasks)
            show(task);
        return std::move(out_);
    }

  private:
    template <typename... Arguments>
    void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        append(out_, format, std::forward<Arguments>(arguments)...);
    }

    std::string bold(std::string_view text) const { return attribute("1", text); }
    std::string dim(std::string_view text) const { return attribute("2", text); }
    std::string attribute(const char* code, std::string_view text) const {
        return options_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
    }

    void fact(std::string_view name, const std::string& value) {
        print("  {}  {}\n", dim(fmt::format("{:<10}", name)), value);
    }

    void header() {
        const Snapshot& s = snapshot_;
        std::string system = printable(s.os_version.value_or("an unknown system"));
        const bool told_below = s.kernel && s.os_build_version &&
                                s.os_build_version->starts_with(hexadecimal(s.kernel->uuid));
        if (s.os_build_version && !s.os_build_version->empty() && !told_below)
            system += fmt::format(" ({})", printable(*s.os_build_version));
        print("{}\n\n", bold("Stackshot of " + system));
        fact("taken", taken());
        fact("boot args", !s.boot_args           ? unknown
                          : s.boot_args->empty() ? "none"
                                                 : printable(*s.boot_args));
        fact("kernel", kernel());
        fact("cpus", cpu_counts());
        fact("memory", memory());
        fact("contents", contents());
        fact("duration", duration());
        print("\n");
    }

    std::string taken() const {
        const Snapshot& s = snapshot_;
        std::string text = "at an unknown time";
        // A machine whose clock was not set counts from the beginning of 1970.
        constexpr std::uint64_t clock_was_set = 1'000'000'000'000'000;
        if (s.usecs_since_epoch && *s.usecs_since_epoch >= clock_was_set) {
            text = fmt::format("{}.{:06} UTC", utc_text(*s.usecs_since_epoch / 1'000'000),
                               *s.usecs_since_epoch % 1'000'000);
        } else if (s.usecs_since_epoch) {
            text = "at an unknown date (the clock was not set)";
        }
        text += s.absolute_time ? fmt::format(", absolute time {} ({})", *s.absolute_time,
                                              time_text(s.nanoseconds(s.absolute_time)))
                                : ", absolute time unknown";
        if ((s.in_flags.value_or(0) & kcdata::STACKSHOT_FROM_PANIC) != 0)
            text += ", in a panic";
        return text;
    }

    std::string kernel() const {
        if (!snapshot_.kernel)
            return "unknown: the capture tells neither address nor build-id";
        return fmt::format(
            "at {:#x}, build-id {}, {}", snapshot_.kernel->address,
            hexadecimal(snapshot_.kernel->uuid),
            options_.symbols_from.empty() ? "no symbols" : "symbols from " + options_.symbols_from);
    }

    std::string cpu_counts() const {
        std::vector<std::uint64_t> collecting;
        for (const std::int32_t cpu : snapshot_.collecting_cpus)
            if (cpu >= 0)
                collecting.push_back(static_cast<std::uint64_t>(cpu));
        std::sort(collecting.begin(), collecting.end());
        std::string text = collecting.empty() ? "those that collected are unknown"
                                              : fmt::format("{} collected ({})", collecting.size(),
                                                            ranges(collecting));
        if (!snapshot_.absent_cpus)
            return text + ", absent ones unknown";
        std::vector<std::uint64_t> absent;
        for (unsigned cpu = 0; cpu < 64; ++cpu)
            if ((*snapshot_.absent_cpus >> cpu & 1) != 0)
                absent.push_back(cpu);
        if (absent.empty())
            return text + ", none absent";
        return text + bold(fmt::format(", {} DID NOT STOP ({})", absent.size(), ranges(absent)));
    }

    std::string memory() const {
        if (!snapshot_.memory || !snapshot_.page_size)
            return "statistics not recorded";
        const double page = *snapshot_.page_size;
        const MemoryStatistics& m = *snapshot_.memory;
        return fmt::format("{} free, {} active, {} wired; pages of {}",
                           size_text(m.free_pages * page), size_text(m.active_pages * page),
                           size_text(m.wired_pages * page), size_text(page));
    }

    std::string contents() const {
        std::uint64_t threads = 0, frames = 0;
        for (const TaskSnapshot& task : snapshot_.tasks)
            for (const ThreadSnapshot& thread : task.threads) {
                ++threads;
                frames += thread.kernel_stack ? thread.kernel_stack->size() : 0;
                frames += thread.user_stack ? thread.user_stack->size() : 0;
            }
        std::string text = fmt::format("{}, {}, {}", plural(snapshot_.tasks.size(), "task"),
                                       plural(threads, "thread"), plural(frames, "stack frame"));
        if (!snapshot_.tasks_count || !snapshot_.threads_count)
            text += "; how many there should be is unknown";
        else if (*snapshot_.tasks_count != snapshot_.tasks.size() ||
                 *snapshot_.threads_count != threads)
            text += bold(fmt::format("; THERE SHOULD BE {} and {}",
                                     plural(*snapshot_.tasks_count, "task"),
                                     plural(*snapshot_.threads_count, "thread")));
        return text;
    }

    std::string duration() const {
        const Snapshot& s = snapshot_;
        std::string text = time_text(s.nanoseconds(s.duration)) + " stopped, ";
        // 0 is what a capture says that did not measure it.
        text += s.duration_outer.value_or(0) != 0 ? time_text(s.nanoseconds(s.duration_outer))
                                                  : std::string(unknown);
        text += " in all";
        if (s.duration_prior.value_or(0) != 0)
            text += fmt::format(", {} in tries before", time_text(s.nanoseconds(s.duration_prior)));
        if (!s.tries)
            return text + ", tries unknown";
        return text + (*s.tries == 1 ? ", 1 try" : fmt::format(", {} tries", *s.tries));
    }

    /// What each CPU was doing.
    void cpus() {
        struct Line {
            std::uint32_t cpu;
            std::string thread, state;
        };
        std::vector<Line> lines;
        for (const TaskSnapshot& task : snapshot_.tasks)
            for (const ThreadSnapshot& thread : task.threads)
                if (thread.has(kcdata::kThreadOnCore) && thread.last_processor)
                    lines.push_back({*thread.last_processor,
                                     fmt::format("{} / {}", task_name(task), thread_name(thread)),
                                     on_cpu_text(thread)});
        if (lines.empty())
            return;
        std::stable_sort(lines.begin(), lines.end(),
                         [](const Line& a, const Line& b) { return a.cpu < b.cpu; });
        std::size_t width = 0;
        for (const Line& line : lines)
            width = std::max(width, line.thread.size());
        for (const Line& line : lines)
            print("  {}  {:<{}}  {}\n", dim(fmt::format("CPU {:<3}   ", line.cpu)), line.thread,
                  width, line.state);
        print("\n");
    }

    void deadlocks() {
        for (const Diagnosis::Deadlock& deadlock : diagnose(graph_).deadlocks) {
            print("{}\n", bold(deadlock_heading(deadlock)));
            for (const std::string& line : deadlock_lines(graph_, deadlock))
                print("  {}\n", line);
            print("\n");
        }
    }

    /// Where a thread on a CPU stands: outside of what stopped it.
    std::string on_cpu_text(const ThreadSnapshot& thread) {
        if (thread.on_absent_cpu)
            return "did not stop";
        if ((thread.state.value_or(0) & kcdata::SS_TH_IDLE) != 0)
            return "idle";
        const auto frames = stacks_.kernel_stack(thread);
        if (frames.empty())
            return "running";
        return "in " + frames.front().name();
    }

    static std::string task_name(const TaskSnapshot& task) {
        return task.name.empty() ? std::string("(no name)") : printable(task.name);
    }
    static std::string thread_name(const ThreadSnapshot& thread) {
        return thread.name.empty() ? fmt::format("thread {}", thread.id) : printable(thread.name);
    }

    void show(const TaskSnapshot& task) {
        print("{}  {}\n", bold(task_name(task)), task_facts(task));
        if (options_.brief)
            show_briefly(task);
        else
            show_stacks(task);
        for (const ThreadSnapshot& thread : task.unchanged_threads)
            print("  {:>5}  {:<{}}  {:>8}  {}, has not run since the capture before\n", thread.id,
                  "", name_width_, priority_text(thread), state_text(thread));
        print("\n");
    }

    void show_briefly(const TaskSnapshot& task) {
        for (const ThreadSnapshot& thread : task.threads)
            print("  {:>5}  {:<{}}  {:>8}  {}\n", thread.id, printable(thread.name), name_width_,
                  priority_text(thread), state_text(thread));
    }

    /// A stack that several threads have is shown once, where the first of them is.
    void show_stacks(const TaskSnapshot& task) {
        struct Group {
            std::string stack{};
            std::vector<const ThreadSnapshot*> threads{};
        };
        std::vector<Group> groups;
        std::unordered_map<std::string, std::size_t> known;
        std::set<std::size_t> images;
        for (const ThreadSnapshot& thread : task.threads) {
            const std::string stack = stack_text(task, thread, images);
            const auto [found, is_new] = known.try_emplace(stack, groups.size());
            if (is_new || !has_stack(thread))
                groups.push_back({stack});
            (has_stack(thread) ? groups[found->second] : groups.back()).threads.push_back(&thread);
        }
        for (const Group& group : groups) {
            print("\n");
            for (const ThreadSnapshot* const thread : group.threads)
                show(*thread);
            if (group.threads.size() > 1)
                print("      {}\n",
                      dim(fmt::format("{} threads with this stack:", group.threads.size())));
            out_ += group.stack;
        }
        show_images(images);
    }

    /// Where to look up what has no name here.
    void show_images(const std::set<std::size_t>& images) {
        if (images.empty())
            return;
        print("\n  {}\n", dim("binary images"));
        for (const std::size_t index : images) {
            const Images::Image& image = stacks_.images().all()[index];
            print("      {:#018x}  {}  {}\n", image.info.address, uuid_text(image.info.uuid),
                  image_kind(image.kind));
        }
    }

    static const char* image_kind(Images::Kind kind) {
        switch (kind) {
            case Images::Kind::process:
                return "program or library";
            case Images::Kind::shared_cache:
                return "shared cache";
            case Images::Kind::shared_cache_image:
                return "library in the shared cache";
            case Images::Kind::kernel:
                return "kernel";
            case Images::Kind::kernel_extension:
                return "kernel or extension";
            case Images::Kind::kernel_text_exec:
                return "code of the kernel or an extension";
        }
        return "";
    }

    static bool has_stack(const ThreadSnapshot& thread) {
        return thread.kernel_stack || thread.user_stack;
    }

    std::string task_facts(const TaskSnapshot& task) const {
        std::string text =
            fmt::format("pid {}, {}", task.pid ? fmt::format("{}", *task.pid) : unknown,
                        plural(task.threads.size(), "thread"));
        const std::uint64_t flags = task.ss_flags.value_or(0);
        if ((flags & kcdata::kTerminatedSnapshot) != 0)
            text += ", terminated";
        if ((flags & kcdata::kPidSuspended) != 0)
            text += ", suspended";
        if (task.unchanged)
            text += ", unchanged since the capture before";
        if (const auto times = cpu_times(task))
            text += fmt::format(", user {}, system {}", microseconds_text(times->first),
                                microseconds_text(times->second));
        return text;
    }

    /// User and system microseconds of the threads that are and of those that were; nothing if any
    /// is not known.
    std::optional<std::pair<std::uint64_t, std::uint64_t>> cpu_times(
        const TaskSnapshot& task) const {
        const auto microseconds = [this](std::optional<std::uint64_t> usec,
                                         std::optional<std::uint64_t> absolute) {
            const auto nanoseconds = snapshot_.nanoseconds(absolute);
            if (!usec && nanoseconds)
                usec = static_cast<std::uint64_t>(*nanoseconds / 1e3);
            return usec;
        };
        auto user = microseconds({}, task.user_time_in_terminated_threads);
        auto system = microseconds({}, task.system_time_in_terminated_threads);
        const auto add = [](std::optional<std::uint64_t>& sum, std::optional<std::uint64_t> part) {
            sum = sum && part ? std::optional(*sum + *part) : std::nullopt;
        };
        for (const ThreadSnapshot& thread : task.threads) {
            add(user, microseconds(thread.user_usec, thread.user_time));
            add(system, microseconds(thread.system_usec, thread.system_time));
        }
        if (!user || !system || !task.unchanged_threads.empty())
            return std::nullopt;
        return std::pair(*user, *system);
    }

    void show(const ThreadSnapshot& thread) {
        print("  {}  {}{}\n", bold(thread_title(thread)), state_text(thread),
              thread.unchanged ? ", has not run since the capture before" : "");
        print("      {}\n",
              dim(fmt::format("priority {}, user {}, system {}, runnable {}", priority_text(thread),
                              cpu_time(thread.user_usec, thread.user_time),
                              cpu_time(thread.system_usec, thread.system_time),
                              microseconds_text(thread.runnable_usec))));
        if (!thread.dispatch_queue_label.empty())
            print("      dispatch queue \"{}\"\n", printable(thread.dispatch_queue_label));
        show_wait(thread);
    }

    /// By the record that is for it; by the thread's own where that is not there.
    std::string cpu_time(std::optional<std::uint64_t> usec,
                         std::optional<std::uint64_t> absolute) const {
        if (usec || !snapshot_.nanoseconds(absolute))
            return microseconds_text(usec);
        return *absolute == 0 ? "0 s" : time_text(snapshot_.nanoseconds(absolute));
    }

    void show_wait(const ThreadSnapshot& thread) {
        if (const WaitGraph::Wait* const wait = wait_of(thread))
            print("      {}\n", chain_text(graph_, *wait));
    }

    const WaitGraph::Wait* wait_of(const ThreadSnapshot& thread) const {
        const std::size_t index = graph_.find_thread(thread.id);
        if (index == WaitGraph::none || graph_.threads[index].snapshot != &thread)
            return nullptr;
        return graph_.wait_of(index);
    }

    static std::string priority_text(const ThreadSnapshot& thread) {
        if (!thread.sched_priority)
            return unknown;
        if (!thread.base_priority || *thread.base_priority == *thread.sched_priority)
            return fmt::format("{}", *thread.sched_priority);
        return fmt::format("{} (base {})", *thread.sched_priority, *thread.base_priority);
    }

    std::string on_cpu(const ThreadSnapshot& thread) const {
        return thread.last_processor ? fmt::format("CPU {}", *thread.last_processor)
                                     : std::string("an unknown CPU");
    }

    /// ", for 1.2 ms" since `time`, if that is known and in the past.
    std::string since(std::optional<std::uint64_t> time) const {
        const auto now = snapshot_.absolute_time;
        if (!now || !time || *time == 0 || *time > *now)
            return {};
        const auto span = snapshot_.nanoseconds(*now - *time);
        return span ? " for " + time_text(*span) : std::string();
    }

    std::string state_text(const ThreadSnapshot& thread) {
        using namespace kcdata;
        if (!thread.state)
            return "state unknown";
        const std::uint32_t state = *thread.state;
        const bool on_core = thread.has(kThreadOnCore);
        const std::string last =
            thread.last_processor ? fmt::format(", last on CPU {}", *thread.last_processor)
            : thread.last_run_time.value_or(0) != 0 ? std::string()
                                                    : std::string(", never ran");
        std::string text;
        if (on_core) {
            text = (state & (SS_TH_TERMINATE | SS_TH_TERMINATE2)) != 0 ? "terminating on "
                   : (state & SS_TH_IDLE) != 0                         ? "idle on "
                                                                       : "running on ";
            text += on_cpu(thread);
            if ((state & SS_TH_WAIT) != 0)
                text += ", about to wait: " + wait_text(thread);
            if (thread.on_absent_cpu)
                text += ", which did not stop: the stack is the last one known";
            return text;
        }
        if ((state & (SS_TH_TERMINATE | SS_TH_TERMINATE2)) != 0)
            text = "terminating" + last;
        else if ((state & SS_TH_IDLE) != 0)
            text = "idle thread of " + on_cpu(thread) + ", which is busy";
        else if ((state & SS_TH_WAIT) != 0 && thread.wait_event == 0u && !thread.last_processor &&
                 wait_of(thread) == nullptr)
            text = "not started";
        else if ((state & SS_TH_WAIT) != 0)
            text = wait_text(thread) + since(thread.last_run_time) + last;
        else if ((state & SS_TH_RUN) != 0)
            text = "runnable" + since(thread.last_made_runnable_time) + last;
        else if ((state & SS_TH_SUSP) == 0)
            text = fmt::format("state {:#x}", state) + last;
        if ((state & SS_TH_SUSP) != 0)
            text = text.empty() ? "suspended" + last : "suspended, " + text;
        return text;
    }

    std::string wait_text(const ThreadSnapshot& thread) {
        std::string text;
        if (!thread.wait_event) {
            text = "waiting for something unknown";
        } else if (*thread.wait_event == 0) {
            text = wait_of(thread) != nullptr ? "waiting" : "waiting, for what is not recorded";
        } else {
            const auto symbol = symbols_ != nullptr ? symbols_->symbol(*thread.wait_event)
                                                    : std::optional<Symbol>();
            // A thread that waits for nothing but time waits for the function that does it.
            if (symbol && symbol->function)
                text = symbol->name.find("sleep") != std::string::npos
                           ? "sleeping"
                           : "waiting in " + short_name(symbol->name);
            else if (symbol)
                text = fmt::format(
                    "blocked on {:#x} ({}{})", *thread.wait_event, short_name(symbol->name),
                    symbol->offset != 0 ? fmt::format("+{:#x}", symbol->offset) : std::string());
            else
                text = fmt::format("blocked on {:#x}", *thread.wait_event);
        }
        if ((*thread.state & kcdata::SS_TH_UNINT) != 0)
            text += " (uninterruptible)";
        return text;
    }

    /// The lines of a stack. `images` gets those that hold what is not symbolized.
    std::string stack_text(const TaskSnapshot& task, const ThreadSnapshot& thread,
                           std::set<std::size_t>& images) const {
        if (!has_stack(thread))
            return "      (no kernel stack recorded)\n";
        const auto frames = stacks_.whole_stack(task, thread);
        constexpr std::size_t widest = 64;
        std::size_t width = 0;
        for (const StackFrame& frame : frames)
            if (const std::size_t size = frame.name().size(); size <= widest)
                width = std::max(width, size);
        std::string text;
        bool user = false;
        for (const StackFrame& frame : frames) {
            if (frame.user && !std::exchange(user, true) && &frame != &frames.front())
                text += fmt::format("         {}\n", dim("-- user --"));
            text += fmt::format("    {:>3}  ",
                                frame.index ? fmt::format("{}", *frame.index) : std::string());
            if (options_.addresses)
                text += (frame.index ? dim(fmt::format("{:#018x}", frame.address))
                                     : std::string(18, ' ')) +
                        "  ";
            const std::string place = place_text(frame, images);
            if (place.empty() && !frame.inlined)
                text += frame.name() + '\n';
            else
                text += fmt::format("{:<{}}  {}{}\n", frame.name(), width, dim(place),
                                    frame.inlined ? dim(" (inlined)") : std::string());
            if (frame.exception_entry)
                text += fmt::format("         {}\n", dim("-- exception; interrupted was --"));
        }
        if (thread.has(kcdata::kThreadTruncKernBT) || thread.has(kcdata::kThreadTruncUserBT) ||
            thread.has(kcdata::kThreadTruncatedBT))
            text += "         (the stack could not be followed any further)\n";
        return text;
    }

    /// The line of the source; of an address without name, the image for another tool to look in.
    std::string place_text(const StackFrame& frame, std::set<std::size_t>& images) const {
        if (!frame.function.empty() || !frame.image)
            return frame.place();
        images.insert(*frame.image);
        const LoadInfo& image = stacks_.images().all()[*frame.image].info;
        return fmt::format("{} + {:#x}", uuid_text(image.uuid), frame.address - image.address);
    }

    const Snapshot& snapshot_;
    const WaitGraph graph_;
    const Stacks stacks_;
    Symbolizer* symbols_;
    const ReportOptions& options_;
    std::size_t name_width_ = 0;  ///< of the longest thread name
    std::string out_{};
};

}  // namespace

std::string report(const Snapshot& snapshot, Symbolizer* symbols, const ReportOptions& options) {
    return Report(snapshot, symbols, options).run();
}

}  // namespace tools
