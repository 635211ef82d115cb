#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "kcdata/stackshot_flags.hpp"
#include "kernel/absolute_time.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/console.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/selftest/waiting_tasks.hpp"
#include "kernel/stackshot_system.hpp"
#include "stackshot/attempt.hpp"
#include "stackshot/capture.hpp"
#include "stackshot/estimate.hpp"
#include "stackshot/request.hpp"

// How much sooner interrupts are on again when all CPUs collect: pairs of captures of one system,
// single-threaded and parallel. A measurement; it fails only if a capture does.
namespace kernel::selftest {
namespace {

using namespace kcdata;

/// Takes a capture and throws it away. How long interrupts were off; 0 after a failure.
std::uint64_t interrupts_off(Verdict& verdict, stackshot::Mode mode) {
    stackshot::System& system = stackshot_system();
    stackshot::Request request;
    request.flags = STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_LOADINFO;
    // Not in QEMU, where reading the counter takes a lock all CPUs share.
    if (boot_arguments().number("speedup.latencies", 0, 0, 1) == 0)
        request.flags |= STACKSHOT_DISABLE_LATENCY_INFO;
    const auto estimate = stackshot::estimate_stackshot(system.facts(), system.task_count(),
                                                        system.thread_count(), request);
    stackshot::Attempt attempt(system);
    if (attempt.prepare(request, estimate, estimate.size, mode) != KERN_SUCCESS) {
        verdict.fail("no memory for a capture");
        return 0;
    }
    stackshot::Collection* const collection = &attempt.collection();
    stackshot::CaptureTrap body(std::span(&collection, 1));
    const stackshot::TrapOutcome outcome = system.trap(body);
    auto assembled = attempt.assemble({});
    if (!assembled.ok()) {
        verdict.fail("the capture failed: %s", kern_return_name(assembled.error()));
        return 0;
    }
    system.free(assembled->buffer);
    if (outcome.absent != 0)
        verdict.fail("CPUs %016lx did not answer", outcome.absent);
    return outcome.interrupts_off;
}

struct Pair {
    std::uint64_t single = 0, parallel = 0;

    /// A thousand times single-threaded through parallel.
    std::uint64_t ratio() const { return 1000 * single / std::max<std::uint64_t>(parallel, 1); }
};

Pair measure(Verdict& verdict, bool single_first) {
    constexpr auto single = stackshot::Mode::single_threaded;
    constexpr auto parallel = stackshot::Mode::parallel;
    Pair pair;
    if (single_first)
        pair.single = interrupts_off(verdict, single);
    pair.parallel = interrupts_off(verdict, parallel);
    if (!single_first)
        pair.single = interrupts_off(verdict, single);
    return pair;
}

}  // namespace

void speedup_test(Verdict& verdict) {
    constexpr std::size_t most_pairs = 99;
    constexpr std::size_t warm_up = 2;
    BootArguments& arguments = boot_arguments();
    WaitingTasks wanted;
    wanted.tasks = arguments.number("speedup.tasks", 100, 1, 10'000);
    wanted.threads_per_task = arguments.number("speedup.threads", 20, 1, 10'000);
    wanted.depth = arguments.number("speedup.depth", 8, 0, 100);
    const std::size_t count = arguments.number("speedup.pairs", 9, 1, most_pairs);
    if (!start_waiting_tasks(verdict, wanted))
        return;
    std::array<Pair, most_pairs> pairs;
    for (std::size_t i = 0; i < warm_up && !verdict.failed(); i++)
        (void)measure(verdict, i % 2 == 0);
    for (std::size_t i = 0; i < count && !verdict.failed(); i++)
        pairs[i] = measure(verdict, i % 2 == 0);
    if (verdict.failed())
        return;
    const auto median =
        std::span(pairs).first(count).begin() + static_cast<std::ptrdiff_t>(count / 2);
    std::ranges::nth_element(std::span(pairs).first(count), median, {}, &Pair::ratio);
    console::print(
        "speedup: %zu tasks of %zu threads: interrupts off %lu us single-threaded, %lu us "
        "parallel, ratio %lu.%03lu, the median of %zu pairs\n",
        wanted.tasks, wanted.threads_per_task, absolute_time_to_microseconds(median->single),
        absolute_time_to_microseconds(median->parallel), median->ratio() / 1000,
        median->ratio() % 1000, count);
}

}  // namespace kernel::selftest
