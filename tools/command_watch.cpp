#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "kcdata/stackshot_flags.hpp"
#include "tools/commands.hpp"
#include "tools/delta.hpp"
#include "tools/diff.hpp"
#include "tools/input.hpp"
#include "tools/interruption.hpp"
#include "tools/kernel_symbols.hpp"
#include "tools/link_options.hpp"
#include "tools/snapshot_text.hpp"
#include "tools/stacks.hpp"

namespace tools {

namespace {

using namespace kcdata;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* summary = "Takes delta stackshots again and again and shows what changed";
constexpr const char* details =
    "\nFor each interval a line of how many threads there are, ran, moved to another stack, are "
    "new or\n"
    "gone; then each of these threads, where it stands, and what it used. Between two lines only\n"
    "what has changed is on the wire.\n\n"
    "  stackshot watch /dev/ttyUSB0 --every 1s\n"
    "  stackshot watch unix:/tmp/uart --every 200ms --count 20 --brief\n\n";

struct Options {
    TargetOptions target{};
    KernelSymbols symbols{};
    unsigned every_ms = 1000;
    unsigned count = 0;
    std::optional<unsigned> pid{};
    bool brief = false;
};

/// A capture as it arrived.
struct Shot {
    Snapshot snapshot{};
    std::size_t bytes = 0;  ///< of the line's object
};

class Watch {
  public:
    Watch(Link& link, Options& options) : link_(link), options_(options) {}

    std::optional<Failure> run();

  private:
    /// A capture of what has changed since `since`; 0: of everything.
    Expected<Shot> take(std::uint64_t since);
    void show(const Shot& before, const Shot& after);
    void show_thread(const ThreadDiff& diff, const Stacks& stacks);

    Link& link_;
    Options& options_;
};

Expected<Shot> Watch::take(std::uint64_t since) {
    serial::StackshotRequest request;
    request.flags = STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_LOADINFO | STACKSHOT_DO_COMPRESS;
    if (since != 0)
        request.flags |= STACKSHOT_COLLECT_DELTA_SNAPSHOT;
    request.delta_timestamp = since;
    if (options_.pid)
        request.pid = static_cast<std::int32_t>(*options_.pid);
    const auto object =
        link_.request_object(serial::Operation::stackshot, std::as_bytes(std::span(&request, 1)));
    if (!object.ok())
        return object.failure();
    auto bytes = link_.pull(object.value());
    if (!bytes.ok())
        return bytes.failure();
    link_.clear_line();
    Shot shot;
    shot.bytes = bytes.value().size();
    const auto input = Input::of(std::move(bytes.value()), "the capture");
    if (!input.ok())
        return input.failure();
    shot.snapshot = read_snapshot(input.value().buffers().front().bytes);
    for (const std::string& problem : shot.snapshot.problems)
        say("the capture: {}", problem);
    if (!shot.snapshot.absolute_time)
        return Failure{"the capture does not tell when it was taken", exit_damaged};
    return shot;
}

std::optional<Failure> Watch::run() {
    auto first = take(0);
    if (!first.ok())
        return first.failure();
    Shot before = std::move(first.value());
    auto due = steady_clock::now();
    for (unsigned number = 1; options_.count == 0 || number <= options_.count; ++number) {
        // A line slower than that sets the pace.
        due = std::max(due + milliseconds(options_.every_ms), steady_clock::now());
        if (auto failure = link_.idle(std::chrono::ceil<milliseconds>(due - steady_clock::now())))
            return failure;
        auto next = take(*before.snapshot.absolute_time);
        if (!next.ok())
            return next.failure();
        Shot after = std::move(next.value());
        // A thread that is new and has not run yet cannot be completed, and need not be.
        (void)complete_delta(after.snapshot, before.snapshot);
        if (!after.snapshot.timebase)
            after.snapshot.timebase = before.snapshot.timebase;
        show(before, after);
        before = std::move(after);
    }
    return std::nullopt;
}

/// Where a thread stands: a few frames, without those of the switch away from it.
std::string place_text(const std::vector<StackFrame>& frames) {
    constexpr std::size_t most = 3;
    const auto switches = [](const StackFrame& frame) {
        return frame.function == "kernel::switch_to" ||
               frame.function.starts_with("kernel::scheduler::");
    };
    const auto begin = std::find_if_not(frames.begin(), frames.end(), switches);
    std::string text;
    for (auto at = begin; at != frames.end() && at - begin < static_cast<std::ptrdiff_t>(most);
         ++at)
        text += (at == begin ? ": " : " < ") + short_name(at->name());
    return text;
}

/// Whether a line of its own is for the thread.
bool worth_a_line(const ThreadDiff& diff) {
    switch (diff.change) {
        case ThreadChange::added:
        case ThreadChange::gone:
        case ThreadChange::moved:
            return true;
        case ThreadChange::stuck:
        case ThreadChange::unknown:
            return diff.ran == true;
        case ThreadChange::idle:
            return false;
    }
    return false;
}

void Watch::show(const Shot& before, const Shot& after) {
    const Diff diff = make_diff(before.snapshot, after.snapshot);
    std::size_t ran = 0, moved = 0, added = 0, gone = 0;
    for (const ThreadDiff& each : diff.threads) {
        ran += each.ran == true && each.change != ThreadChange::idle;
        moved += each.change == ThreadChange::moved;
        added += each.change == ThreadChange::added;
        gone += each.change == ThreadChange::gone;
    }
    fmt::print("{} +{}: {}, {} ran, {} moved, {} new, {} gone ({} bytes)\n",
               time_text(after.snapshot.nanoseconds(after.snapshot.absolute_time)),
               time_text(diff.interval), plural(diff.threads.size() - gone, "thread"), ran, moved,
               added, gone, after.bytes);
    if (!options_.brief) {
        const Stacks stacks(after.snapshot, options_.symbols.of(after.snapshot, "the capture"));
        for (const ThreadDiff& each : diff.threads)
            if (worth_a_line(each))
                show_thread(each, stacks);
    }
    std::fflush(stdout);
}

void Watch::show_thread(const ThreadDiff& diff, const Stacks& stacks) {
    const char* const what =
        diff.change == ThreadChange::stuck || diff.change == ThreadChange::unknown
            ? "ran"
            : thread_change_name(diff.change);
    std::string text =
        fmt::format("  {:6} {} {}", what, task_title(diff.task()), thread_title(diff.thread()));
    if (diff.after != nullptr) {
        text += place_text(stacks.whole_stack(*diff.task_after, *diff.after));
        if (diff.user_usec && diff.system_usec)
            text += fmt::format(
                ", used {}",
                time_text(static_cast<double>(*diff.user_usec + *diff.system_usec) * 1e3));
    }
    fmt::print("{}\n", text);
}

int watch(Options& options) {
    if (const auto failure = options.symbols.open())
        return report_failure(*failure);
    const Interruption interruption;
    const auto target = TargetLink::open(options.target);
    if (!target.ok())
        return report_failure(target.failure());
    if (const auto failure = Watch(target.value()->link(), options).run())
        return report_failure(*failure);
    return options.symbols.wrong() ? exit_wrong_symbols : exit_complete;
}

}  // namespace

void add_watch_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("watch", summary);
    add_target_options(verb, options->target);
    verb.option("--every", "TIME", options->every_ms,
                "How far the captures are apart: 500ms, 2s [1s]")
        .milliseconds();
    verb.option("--count", "N", options->count, "Intervals to show [until Ctrl-C]");
    verb.option("--pid", "N", options->pid, "Only this task").range(0, 99999);
    verb.flag("--brief", options->brief, "Only a line for each interval");
    options->symbols.add_option(verb);
    verb.details(details);
    verb.action([options] { return watch(*options); });
}

}  // namespace tools
