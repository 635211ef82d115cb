#include "kernel/console.hpp"
#include "kernel/mutex.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/scene.hpp"

namespace kernel::workload {
namespace {

constinit Mutex mutex;

[[gnu::noinline]] void hold_it_for_a_while(Random& random) {
    MutexGuard guard(mutex);
    // Mostly asleep: the CPU is for the others too, but not the lock.
    compute(50, 1);
    sleep_microseconds(500 + random.below(1000));
}

void convoy_member(void* seed) {
    Random random(reinterpret_cast<std::uint64_t>(seed));
    for (;;)
        hold_it_for_a_while(random);
}

}  // namespace

/// threads (8) that need one mutex all the time: one of them owns it, the others wait. No deadlock.
void start_lock_convoy(const Size& size) {
    Scene scene("lock-convoy", size.seed);
    const int priority = scene.between(20, 50);
    for (std::uint32_t threads = size.threads != 0 ? size.threads : 8; threads > 0; threads--) {
        const Thread& thread =
            scene.actor(convoy_member, reinterpret_cast<void*>(scene.random().next()), priority);
        console::print("scene: thread %lu needs 0x%lx all the time\n", thread.thread_id,
                       reinterpret_cast<std::uint64_t>(&mutex));
    }
}

}  // namespace kernel::workload
