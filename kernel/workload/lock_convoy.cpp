#include <algorithm>
#include <array>

#include "kernel/mutex.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/scene.hpp"

namespace kernel::workload {
namespace {

constexpr std::uint32_t max_convoy = 200;

constinit Mutex mutex;
constinit HandOver hand_over;

[[gnu::noinline]] void hold_it_for_a_while(Random& random) {
    MutexGuard guard(mutex);
    // Mostly asleep: the CPU is for the others too, but not the lock.
    compute(50, 1);
    sleep_microseconds(500 + random.below(1000));
    hand_over.await_last_owner(kcdata::kThreadWaitKernelMutex);
}

void convoy_member(void* seed) {
    Random random(reinterpret_cast<std::uint64_t>(seed));
    for (;;)
        hold_it_for_a_while(random);
}

}  // namespace

/// threads (8, 2 to 200) that need one mutex all the time: one of them owns it, the others wait. No
/// deadlock.
void start_lock_convoy(const Size& size) {
    Scene scene("lock-convoy", size.seed);
    const int priority = scene.between(20, 50);
    const std::uint32_t count =
        size.threads != 0 ? std::clamp(size.threads, std::uint32_t{2}, max_convoy) : 8;
    static constinit std::array<Thread*, max_convoy> threads;
    for (std::uint32_t index = 0; index < count; index++) {
        threads[index] =
            &scene.actor(convoy_member, reinterpret_cast<void*>(scene.random().next()), priority);
        scene.needs(*threads[index], &mutex);
    }
    for (std::uint32_t index = 0; index < count; index++)
        scene.await_blocked(*threads[index], kcdata::kThreadWaitKernelMutex);
    scene.crowd(&mutex, count - 2, count - 1);
}

}  // namespace kernel::workload
