#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "kernel/boot_arguments.hpp"
#include "kernel/console.hpp"
#include "kernel/machine.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/sleep.hpp"
#include "kernel/stackshot_service.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"

// Threads print as much as they can while captures are sent over the same line. The test outside
// looks whether each line and each capture arrived whole, this one whether others can run
// meanwhile.
namespace kernel::selftest {
namespace {

constexpr std::uint64_t thread_count = 4;
std::atomic<bool> sent{false};
std::atomic<std::uint64_t> lines{0};

void chatter(void* number) {
    for (std::uint64_t line = 0; !sent.load(std::memory_order_relaxed); line++) {
        console::print("chatter %lu says %lu: the quick brown fox jumps over the lazy dog\n",
                       reinterpret_cast<std::uint64_t>(number), line);
        lines.fetch_add(1, std::memory_order_relaxed);
    }
}

/// Wants to run every millisecond, before all threads that are not the kernel's.
std::atomic<std::uint64_t> turns{0};
void tick(void*) {
    while (!sent.load(std::memory_order_relaxed)) {
        turns.fetch_add(1, std::memory_order_relaxed);
        sleep_milliseconds(1);
    }
}

}  // namespace

void console_test(Verdict& verdict) {
    std::array<Thread*, thread_count> threads{};
    for (std::uint64_t i = 0; i < thread_count; i++) {
        auto thread = thread_create(kernel_task(), "chatter", chatter, reinterpret_cast<void*>(i),
                                    {.joinable = true});
        if (!thread.ok())
            return verdict.fail("no thread");
        threads[i] = thread.value();
        thread_start(*threads[i]);
    }
    auto ticking = thread_create(kernel_task(), "ticking", tick, nullptr,
                                 {.priority = BASEPRI_KERNEL - 1, .joinable = true});
    if (!ticking.ok())
        return verdict.fail("no thread");
    thread_start(*ticking.value());
    // With one CPU the others have not run yet.
    sleep_milliseconds(200);
    const StackshotPlan plan = read_stackshot_plan(boot_arguments());
    StackshotSeries series(plan);
    const std::uint64_t before = turns.load(std::memory_order_relaxed);
    for (std::uint64_t number = 1; number <= plan.count; number++)
        if (const auto error = series.next(); error != stackshot::BSD_SUCCESS)
            verdict.fail("capture %lu: %s", number, stackshot::bsd_errno_name(error));
    if (turns.load(std::memory_order_relaxed) == before)
        verdict.fail("nobody else ran while %lu captures were sent", plan.count);
    sent.store(true, std::memory_order_relaxed);
    for (Thread* const thread : threads)
        thread_join(*thread);
    thread_join(*ticking.value());
    console::print("console: %lu lines, %lu captures\n", lines.load(std::memory_order_relaxed),
                   plan.count);
}

}  // namespace kernel::selftest
