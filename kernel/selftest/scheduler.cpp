#include <algorithm>
#include <atomic>
#include <bit>

#include "kernel/absolute_time.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/console.hpp"
#include "kernel/cpu.hpp"
#include "kernel/mutex.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/workload.hpp"

namespace kernel::selftest {
namespace {

using namespace workload;

struct Stress {
    std::uint32_t threads = 0;
    std::uint32_t rounds = 0;
    std::uint32_t depth = 0;
    Mutex mutex{};
    std::uint64_t guarded = 0;  ///< by the mutex
    Semaphore turnstile{3};     ///< at most three threads inside
    std::atomic<int> inside{0};
    std::atomic<std::uint64_t> children_started{0}, children_run{0};
    Semaphore finished{};
};
constinit Stress stress;

/// Fills its frame with a pattern and looks whether it is still there when the frames below are
/// done: stacks do not mix, whatever interrupts and switches threads meanwhile.
[[gnu::noinline]] std::uint64_t patterned_descend(std::uint64_t pattern, std::uint32_t depth) {
    volatile std::uint64_t words[4];
    for (std::uint64_t index = 0; index < 4; index++)
        words[index] = pattern + index;
    std::uint64_t frames = 1;
    if (depth > 1)
        frames += patterned_descend(pattern * 3, depth - 1);
    else
        scheduler::yield();
    for (std::uint64_t index = 0; index < 4; index++)
        CHECK(words[index] == pattern + index);
    return frames;
}

void stress_child(void*) {
    stress.children_run.fetch_add(1, std::memory_order_relaxed);
}

void stress_round(Random& random, Task& task) {
    switch (random.below(6)) {
        case 0: {
            MutexGuard guard(stress.mutex);
            const std::uint64_t value = stress.guarded;
            compute(20, value);
            stress.guarded = value + 1;
            return;
        }
        case 1: {
            stress.turnstile.wait();
            CHECK(stress.inside.fetch_add(1, std::memory_order_relaxed) < 3);
            compute(20, 0);
            stress.inside.fetch_sub(1, std::memory_order_relaxed);
            stress.turnstile.signal();
            break;
        }
        case 2: {
            const std::uint64_t deadline =
                machine::absolute_time() + nanoseconds_to_absolute_time(random.below(2'000'000));
            sleep_until(deadline);
            CHECK(machine::absolute_time() >= deadline);
            break;
        }
        case 3:
            compute(random.below(1000), 1);
            break;
        case 4:
            CHECK(patterned_descend(random.next(), stress.depth) == stress.depth);
            break;
        case 5:
            stress.children_started.fetch_add(1, std::memory_order_relaxed);
            thread_join(
                make_thread(task, stress_child, nullptr,
                            {.priority = 20 + static_cast<int>(random.below(40)), .joinable = true},
                            "stress.child"));
            break;
    }
    MutexGuard guard(stress.mutex);
    stress.guarded++;
}

void stress_worker(void* argument) {
    Random random(reinterpret_cast<std::uint64_t>(argument));
    for (std::uint32_t round = 0; round < stress.rounds; round++)
        stress_round(random, *current_thread().task);
    stress.finished.signal();
}

}  // namespace

/// threads=N (32, or two for each CPU) threads do rounds=N (200) of everything threads can do, with
/// recursions depth=N (20) frames deep, and check each other. Every CPU has to take part.
void scheduler_test(Verdict& verdict) {
    BootArguments& arguments = boot_arguments();
    const auto cpu_count = static_cast<std::uint32_t>(std::popcount(machine::online_cpus()));
    stress.threads = static_cast<std::uint32_t>(
        arguments.number("threads", std::max(32u, 2 * cpu_count), 1, 1000));
    stress.rounds = static_cast<std::uint32_t>(arguments.number("rounds", 200, 1));
    stress.depth =
        static_cast<std::uint32_t>(arguments.number("depth", 20, 1, workload::max_depth));
    const std::uint64_t start = machine::absolute_time();
    Task& task = make_task("stress");
    for (std::uintptr_t index = 0; index < stress.threads; index++)
        make_thread(task, stress_worker, reinterpret_cast<void*>(index),
                    {.priority = 28 + static_cast<int>(index % 4)}, "stress.worker.%zu", index);
    task_release(task);
    for (std::uint32_t finished = 0; finished < stress.threads; finished++)
        stress.finished.wait();
    const std::uint64_t milliseconds =
        absolute_time_to_microseconds(machine::absolute_time() - start) / 1000;

    if (stress.guarded != std::uint64_t{stress.threads} * stress.rounds)
        verdict.fail("%lu rounds counted", stress.guarded);
    if (stress.children_started != stress.children_run)
        verdict.fail("%lu of %lu children ran", stress.children_run.load(),
                     stress.children_started.load());
    std::uint64_t switches = 0;
    for_each_cpu(machine::online_cpus(), [&](CpuIndex cpu) {
        SchedulerGuard guard;
        switches += cpu_at(cpu).switches;
        if (cpu_at(cpu).switches == 0)
            verdict.fail("cpu %u ran no thread", cpu);
    });
    console::print("scheduler: %u threads, %u rounds each, %lu children, %lu switches, %lu ms\n",
                   stress.threads, stress.rounds, stress.children_run.load(), switches,
                   milliseconds);
}

}  // namespace kernel::selftest
