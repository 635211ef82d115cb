#include <array>
#include <atomic>
#include <bit>

#include "kernel/absolute_time.hpp"
#include "kernel/console.hpp"
#include "kernel/mutex.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/workload.hpp"

namespace kernel::selftest {
namespace {

constexpr int low_priority = 10, middle_priority = 40, high_priority = 60;

// The chain: high -> second, held by the middle man -> first, held by low.
constinit Mutex first, second;
constinit Semaphore first_held, second_held;
constinit std::atomic<bool> give_back{false}, high_had_it{false};

void low(void*) {
    {
        MutexGuard guard(first);
        first_held.signal();
        while (!give_back.load(std::memory_order_relaxed))
            workload::compute(100, 1);
    }
}
void middle_man(void*) {
    MutexGuard guard(second);
    second_held.signal();
    MutexGuard other(first);
}
void high(void*) {
    MutexGuard guard(second);
    high_had_it.store(true, std::memory_order_relaxed);
}
void hog(void*) {
    while (!high_had_it.load(std::memory_order_relaxed))
        workload::compute(100, 2);
}

Thread& start(const char* name, ThreadEntry entry, int priority) {
    return workload::make_thread(kernel_task(), entry, nullptr,
                                 {.priority = priority, .joinable = true}, "%s", name);
}

void await_blocked(const Thread& thread) {
    for (;;) {
        {
            SchedulerGuard guard;
            if (thread.block_hint == kcdata::kThreadWaitKernelMutex)
                return;
        }
        sleep_milliseconds(1);
    }
}

void check_priority(Verdict& verdict, const char* when, const Thread& thread, int expected) {
    SchedulerGuard guard;
    if (thread.sched_pri != expected)
        verdict.fail("%s: \"%s\" is scheduled at %d, not at %d", when, thread.name,
                     int{thread.sched_pri}, expected);
}

}  // namespace

/// A priority inversion over two mutexes, with a thread of a priority in between on every CPU that
/// does not end before the high one has had its mutex: without inheritance nothing goes on.
void inversion_test(Verdict& verdict) {
    Thread& owner = start("low", low, low_priority);
    first_held.wait();
    Thread& between = start("middle man", middle_man, low_priority + 1);
    second_held.wait();
    await_blocked(between);
    check_priority(verdict, "one waiter", owner, low_priority + 1);
    std::array<Thread*, max_cpus> hogs{};
    std::size_t count = 0;
    for_each_cpu(machine::online_cpus(),
                 [&](CpuIndex) { hogs[count++] = &start("hog", hog, middle_priority); });
    Thread& waiter = start("high", high, high_priority);
    await_blocked(waiter);
    check_priority(verdict, "a chain", owner, high_priority);
    check_priority(verdict, "a chain", between, high_priority);
    const std::uint64_t begin = machine::absolute_time();
    give_back.store(true, std::memory_order_relaxed);
    thread_join(waiter);
    console::print("inversion: the high thread went on after %lu us\n",
                   absolute_time_to_microseconds(machine::absolute_time() - begin));
    check_priority(verdict, "afterwards", owner, low_priority);
    check_priority(verdict, "afterwards", between, low_priority + 1);
    for (std::size_t index = 0; index < count; index++)
        thread_join(*hogs[index]);
    thread_join(between);
    thread_join(owner);
}

}  // namespace kernel::selftest
