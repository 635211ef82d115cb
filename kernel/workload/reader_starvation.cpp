#include "kernel/rw_lock.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/scene.hpp"

namespace kernel::workload {
namespace {

constinit RwLock rw_lock;
constinit HandOver hand_over;

[[gnu::noinline]] void write_for_a_while(Random& random) {
    rw_lock.lock_exclusive();
    // Mostly asleep: the CPU is for the others too, but not the lock.
    compute(50, 1);
    sleep_microseconds(500 + random.below(1000));
    hand_over.await_last_owner(kcdata::kThreadWaitKernelRWLockWrite);
    rw_lock.unlock_exclusive();
}

void writer(void* seed) {
    Random random(reinterpret_cast<std::uint64_t>(seed));
    for (;;)
        write_for_a_while(random);
}

void reader(void*) {
    for (;;) {
        rw_lock.lock_shared();
        rw_lock.unlock_shared();
    }
}

}  // namespace

/// Two writers that hand a reader-writer lock to each other, and threads (3) readers of lower
/// priority that never get it. No deadlock.
void start_reader_starvation(const Size& size) {
    Scene scene("reader-starvation", size.seed);
    const int priority = scene.between(40, 60);
    for (int writers = 0; writers < 2; writers++) {
        Thread& thread =
            scene.actor(writer, reinterpret_cast<void*>(scene.random().next()), priority);
        scene.needs(thread, &rw_lock);
        // The second one waits for the first one: from then on the lock is never free.
        if (writers == 1)
            scene.await_blocked(thread, kcdata::kThreadWaitKernelRWLockWrite);
    }
    const std::uint32_t readers = size.threads != 0 ? size.threads : 3;
    for (std::uint32_t index = 0; index < readers; index++) {
        const Thread& thread = scene.actor(reader, nullptr, priority - scene.between(5, 20));
        scene.await_blocked(thread, kcdata::kThreadWaitKernelRWLockRead);
        scene.waits(thread, &rw_lock, nullptr);
    }
    scene.crowd(&rw_lock, readers, readers + 1);
}

}  // namespace kernel::workload
