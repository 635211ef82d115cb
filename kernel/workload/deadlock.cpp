#include <algorithm>
#include <array>

#include "kernel/mutex.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/workload/scene.hpp"

namespace kernel::workload {
namespace {

constexpr std::uint32_t max_ring = 200;

struct Member {
    Mutex* own = nullptr;
    Mutex* next = nullptr;
    Semaphore go{};
};
constinit std::array<Mutex, max_ring> mutexes;
constinit std::array<Member, max_ring> members;
constinit Semaphore held;

[[gnu::noinline]] void take_the_next_one(Member& self) {
    MutexGuard guard(*self.next);
}

void ring_member(void* argument) {
    Member& self = *static_cast<Member*>(argument);
    MutexGuard guard(*self.own);
    held.signal();
    self.go.wait();
    take_the_next_one(self);
}

/// `count` threads, each of a task of its own, hold a mutex each and wait for that of the next one.
void start_ring(const char* name, std::uint32_t count, std::uint64_t seed) {
    Scene scene(name, seed);
    std::array<std::uint32_t, max_ring> order;
    const std::span drawn = std::span(order).first(count);
    scene.shuffle(drawn);
    for (std::uint32_t index = 0; index < count; index++) {
        members[index].own = &mutexes[drawn[index]];
        members[index].next = &mutexes[drawn[(index + 1) % count]];
    }
    static constinit std::array<Thread*, max_ring> threads;
    scene.shuffle(drawn);
    for (const std::uint32_t index : drawn)
        threads[index] = &scene.actor(ring_member, &members[index], scene.between(20, 50));
    for (std::uint32_t index = 0; index < count; index++)
        held.wait();
    scene.shuffle(drawn);
    for (const std::uint32_t index : drawn)
        members[index].go.signal();
    for (std::uint32_t index = 0; index < count; index++)
        scene.await_blocked(*threads[index], kcdata::kThreadWaitKernelMutex);
    for (std::uint32_t index = 0; index < count; index++)
        scene.waits(*threads[index], members[index].next, threads[(index + 1) % count]);
    scene.deadlock(std::span(threads).first(count));
}

}  // namespace

/// Two tasks that take two mutexes, each its own first.
void start_deadlock2(const Size& size) {
    start_ring("deadlock2", 2, size.seed);
}

/// threads (5, 2 to 200) in a ring.
void start_deadlock_ring(const Size& size) {
    start_ring("deadlock-ring",
               size.threads != 0 ? std::clamp(size.threads, std::uint32_t{2}, max_ring) : 5,
               size.seed);
}

}  // namespace kernel::workload
