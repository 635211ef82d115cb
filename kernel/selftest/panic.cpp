#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernel/boot_arguments.hpp"
#include "kernel/console.hpp"
#include "kernel/heap.hpp"
#include "kernel/machine_arm64.hpp"
#include "kernel/page_allocator.hpp"
#include "kernel/panic.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/sleep.hpp"
#include "kernel/stackshot_system.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"
#include "kernel/trace.hpp"
#include "platform/arm64/cpu/identity.hpp"
#include "platform/arm64/pl011/pl011.hpp"
#include "stackshot/system.hpp"

// Panics on purpose, where the boot argument `panic.in` says. The test outside looks at what the
// console says, at the capture, and at how the machine ends.
namespace kernel::selftest {
namespace {

/// The lower half of the address space is not mapped.
constexpr std::uintptr_t unmapped = 0xdead'beef'0;

[[gnu::noinline]] void panic_in_thread() {
    panic("on purpose, thread %lu", current_thread().thread_id);
}

[[gnu::noinline]] void fault_in_thread() {
    *reinterpret_cast<volatile std::uint64_t*>(unmapped) = 1;
}

/// Calls itself until the stack is used up.
[[gnu::noinline]] std::uint64_t recurse(std::uint64_t depth) {
    volatile std::uint64_t room[32] = {depth};
    if (depth == UINT64_MAX)
        return 0;
    return recurse(depth + 1) + room[depth % 32];
}
void overflow_stack() {
    (void)recurse(0);
}

[[gnu::noinline]] void panic_in_interrupt() {
    // Nobody's.
    const platform::Mpidr self = platform::cpu::current_mpidr();
    platform::interrupt_controller().send_sgi(platform::Intid::sgi(7), std::span(&self, 1));
    sleep_milliseconds(1000);
}

[[noreturn]] void sleep_always(void*) {
    for (;;)
        sleep_milliseconds(20);
}

/// The timer's interrupt finds a thread to wake that does not wait, and holds the scheduler lock.
[[gnu::noinline]] void panic_in_timer() {
    auto thread = thread_create(kernel_task(), "sleeper", sleep_always, nullptr);
    if (!thread.ok())
        return;
    thread_start(*thread.value());
    for (bool sleeps = false; !sleeps; sleep_milliseconds(1)) {
        const SchedulerGuard guard;
        sleeps = thread.value()->state == SS_TH_WAIT;
        if (sleeps)
            thread.value()->state = 0;
    }
    sleep_milliseconds(1000);
}

[[gnu::noinline]] void panic_with_scheduler_lock() {
    const SchedulerGuard guard;
    panic("with the scheduler lock");
}

[[gnu::noinline]] void fault_with_scheduler_lock() {
    const SchedulerGuard guard;
    fault_in_thread();
}

/// The page allocator finds that the pages are free, and holds its lock.
[[gnu::noinline]] void free_pages_twice() {
    const auto pages = page_allocator().allocate(2);
    page_allocator().free(pages);
    page_allocator().free(pages);
}

/// As above, of the heap's piece.
[[gnu::noinline]] void free_piece_twice() {
    void* const kept = heap::allocate(64);
    void* const piece = heap::allocate(64);
    if (kept == nullptr || piece == nullptr)
        return;
    heap::free(piece);
    heap::free(piece);
}

/// Nobody else can print.
[[gnu::noinline]] void fault_in_print() {
    console::print("half a line and %s", reinterpret_cast<const char*>(unmapped));
}

[[gnu::noinline]] void fault_in_report() {
    panic("%s", reinterpret_cast<const char*>(unmapped));
}

/// What the panic's capture is to record first cannot be read, which nobody checks.
[[gnu::noinline]] void fault_in_panic_capture() {
    auto& facts = const_cast<stackshot::SystemFacts&>(stackshot_system().facts());
    facts.boot_args = reinterpret_cast<const char*>(unmapped);
    panic("on purpose, before another one");
}

/// The trace, which the report shows, has been written over.
[[gnu::noinline]] void panic_with_spoilt_trace() {
    trace_ring(machine::current_cpu())
        .add({.file = reinterpret_cast<const char*>(unmapped), .word = 0x5b01});
    panic("on purpose, with a spoilt trace");
}

/// Whatever is printed is another panic.
[[gnu::noinline]] void panic_without_console() {
    machine::interrupts_disable();
    platform::console_uart() = platform::Pl011(unmapped, 0);
    panic("nobody hears this");
}

std::atomic<CpuMask> ready{0};

void panic_with_others(void*) {
    const CpuMask all = machine::online_cpus();
    machine::interrupts_disable();
    ready.fetch_or(bit_of(machine::current_cpu()));
    while (ready.load() != all) {
    }
    panic("on purpose, all at once");
}
/// All CPUs at a time.
[[gnu::noinline]] void panic_everywhere() {
    for (int n = std::popcount(machine::online_cpus()); n > 1; n--)
        start_kernel_thread("panics", panic_with_others, nullptr);
    panic_with_others(nullptr);
}

void keep_interrupts_off(void*) {
    machine::interrupts_disable();
    ready.fetch_or(bit_of(machine::current_cpu()));
    for (;;)
        machine::wait_for_event();
}
/// Another CPU does not look up.
[[gnu::noinline]] void panic_without_another() {
    start_kernel_thread("deaf", keep_interrupts_off, nullptr);
    while (ready.load() == 0) {
    }
    panic("on purpose, cpu %u does not stop", std::countr_zero(ready.load()));
}

struct Place {
    std::string_view name;
    void (*panic)();
};
constexpr std::array places = {
    Place{"thread", panic_in_thread},
    Place{"thread-exception", fault_in_thread},
    Place{"overflow", overflow_stack},
    Place{"interrupt", panic_in_interrupt},
    Place{"timer", panic_in_timer},
    Place{"scheduler", panic_with_scheduler_lock},
    Place{"scheduler-exception", fault_with_scheduler_lock},
    Place{"page-allocator", free_pages_twice},
    Place{"heap", free_piece_twice},
    Place{"console", fault_in_print},
    Place{"trace", panic_with_spoilt_trace},
    Place{"no-console", panic_without_console},
    Place{"report", fault_in_report},
    Place{"capture", fault_in_panic_capture},
    Place{"all-cpus", panic_everywhere},
    Place{"without-another", panic_without_another},
};

}  // namespace

void panic_test(Verdict& verdict) {
    boot_arguments().entry("panic.in", places).panic();
    verdict.fail("there was no panic");
}

}  // namespace kernel::selftest
