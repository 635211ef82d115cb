#include <atomic>

#include "kernel/condition.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/scene.hpp"

namespace kernel::workload {
namespace {

constinit Mutex mutex;
constinit Condition changed;
constinit std::atomic<bool> ready{false};
constinit Semaphore looked, signalled;

/// The bug: it looks without the mutex. What happens between the look and the wait is missed.
[[gnu::noinline]] void wait_until_ready() {
    if (ready.load(std::memory_order_relaxed))
        return;
    // The window, held open so that it happens every time.
    looked.signal();
    signalled.wait();
    MutexGuard guard(mutex);
    changed.wait(mutex);
}

void consumer(void*) {
    wait_until_ready();
}

void producer(void*) {
    looked.wait();
    {
        MutexGuard guard(mutex);
        ready.store(true, std::memory_order_relaxed);
        changed.signal();
    }
    signalled.signal();
    for (;;)
        sleep_milliseconds(60'000);
}

}  // namespace

/// A thread that waits for a condition variable which was signalled before it waited. No deadlock:
/// nobody is to blame but the past.
void start_lost_wakeup(const Size& size) {
    Scene scene("lost-wakeup", size.seed);
    const bool producer_first = scene.random().below(2) == 0;
    if (producer_first)
        scene.actor(producer, nullptr, scene.between(20, 50));
    const Thread& waiter = scene.actor(consumer, nullptr, scene.between(20, 50));
    if (!producer_first)
        scene.actor(producer, nullptr, scene.between(20, 50));
    scene.await_blocked(waiter, kcdata::kThreadWaitPThreadCondVar);
    scene.waits(waiter, &changed, nullptr);
}

}  // namespace kernel::workload
