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
// looks whether each line and each capture arrived whole.
namespace kernel::selftest {
namespace {

constexpr std::uint64_t thread_count = 4;
std::atomic<bool> sent{false};
std::atomic<std::uint64_t> lines{0};

void chatter(void* number) {
    for (std::uint64_t line = 0; !sent.load(std::memory_order_relaxed); line++) {
        // With interrupts off as well: then the line is waited for by spinning.
        const bool masked = line % 8 == 7;
        const bool enabled = masked && machine::interrupts_disable();
        console::print("chatter %lu says %lu: the quick brown fox jumps over the lazy dog\n",
                       reinterpret_cast<std::uint64_t>(number), line);
        if (masked)
            machine::interrupts_restore(enabled);
        lines.fetch_add(1, std::memory_order_relaxed);
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
    const std::uint64_t count = boot_arguments().number("stackshot.count", 1);
    for (std::uint64_t number = 1; number <= count; number++)
        if (const auto error = capture_and_send(number); error != kcdata::KERN_SUCCESS)
            verdict.fail("capture %lu: %s", number, kcdata::kern_return_name(error));
    sent.store(true, std::memory_order_relaxed);
    for (Thread* const thread : threads)
        thread_join(*thread);
    console::print("console: %lu lines, %lu captures\n", lines.load(std::memory_order_relaxed),
                   count);
}

}  // namespace kernel::selftest
