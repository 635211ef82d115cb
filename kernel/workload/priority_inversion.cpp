#include <bit>

#include "kernel/console.hpp"
#include "kernel/mutex.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/workload/scene.hpp"

namespace kernel::workload {
namespace {

constinit Mutex mutex;
constinit Semaphore held;

[[gnu::noinline]] void compute_with_it() {
    for (std::uint64_t turn = 0;; turn++)
        compute(1000, turn);
}

void low(void*) {
    MutexGuard guard(mutex);
    held.signal();
    compute_with_it();
}

void in_between(void*) {
    for (std::uint64_t turn = 0;; turn++)
        compute(1000, turn);
}

void high(void*) {
    MutexGuard guard(mutex);
}

}  // namespace

/// A thread of low priority computes with a mutex that one of high priority waits for, and on every
/// CPU there is one of a priority in between: the first one runs by inheritance alone.
void start_priority_inversion(const Size& size) {
    Scene scene("priority-inversion", size.seed);
    const Thread& owner = scene.actor(low, nullptr, scene.between(5, 15));
    held.wait();
    for (int cpu = std::popcount(machine::online_cpus()); cpu > 0; cpu--)
        scene.actor(in_between, nullptr, scene.between(25, 40));
    const Thread& waiter = scene.actor(high, nullptr, scene.between(50, 70));
    scene.await_blocked(waiter, kcdata::kThreadWaitKernelMutex);
    scene.waits(waiter, &mutex, &owner);
    console::print("scene: thread %lu of priority %d holds up thread %lu of priority %d\n",
                   owner.thread_id, owner.base_pri, waiter.thread_id, waiter.base_pri);
}

}  // namespace kernel::workload
