#pragma once

#include <cstdint>
#include <span>

#include "kernel/workload/workload.hpp"

/// Situations whose diagnosis is known, as they are put up on purpose. Names, ids, the order of the
/// tasks and who comes first are drawn; what there is to find is printed, for a test to compare it
/// with what a capture says:
///
///     scene: NAME seed 0x1234
///     scene: thread 17 "amber-3f" of task 5 waits for 0xffff000000123456 of thread 19
///     scene: deadlock 1 of 2: thread 17
///     scene: deadlock 2 of 2: thread 19
///     scene: thread 17 needs 0xffff000000123456 all the time
///     scene: 6 to 7 threads wait for 0xffff000000123456
///     scene: thread 17 of priority 9 holds up thread 19 of priority 60
///     scene: thread 17 is 80 frames deep
///     scene: thread 17 runs away
///     scene: stands
namespace kernel::workload {

class Scene {
  public:
    /// Prints its name and the seed everything is drawn from.
    Scene(const char* name, std::uint64_t seed);
    /// Says that it stands: nothing that was printed changes from now on.
    ~Scene();
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;

    Random& random() { return random_; }
    /// A number from `low` to `high`.
    int between(int low, int high);
    /// 0 to order.size() - 1, shuffled.
    void shuffle(std::span<std::uint32_t> order);

    /// A thread in a task of its own, both with drawn names; other tasks may come in front of it.
    Thread& actor(ThreadEntry entry, void* argument, int priority);
    /// One more thread of `task`.
    Thread& actor(Task& task, ThreadEntry entry, void* argument, int priority);

    /// Waits until `thread` is blocked on something of the kind; kThreadWaitNone: until it sleeps.
    /// Any thread.
    static void await_blocked(const Thread& thread, std::uint8_t block_hint);
    /// `waiter` waits for `object`; `owner`: who holds it or brings it about, null: nobody in
    /// particular.
    void waits(const Thread& waiter, const void* object, const Thread* owner);
    /// Each of the threads waits for the next one, and the last one for the first one.
    void deadlock(std::span<Thread* const> threads);
    /// `thread` owns the lock, or waits for it, or is about to.
    void needs(const Thread& thread, const void* lock);
    /// At any time so many threads wait for the lock.
    void crowd(const void* lock, std::uint32_t least, std::uint32_t most);

  private:
    void draw_name(std::span<char> name);

    Random random_;
};

/// Keeps those who hand a lock to each other together: whoever owns it does not give it back before
/// the one it came from waits for it again. So all wait but the owner and at most one more. The
/// lock guards it.
class HandOver {
  public:
    /// The calling thread owns the lock, for which others wait with `block_hint`, and is about to
    /// give it back.
    void await_last_owner(std::uint8_t block_hint);

  private:
    Thread* last_owner_ = nullptr;
};

// The scenes, each in a file of its own name. They stay up.
void start_deadlock2(const Size& size);
void start_deadlock_ring(const Size& size);
void start_priority_inversion(const Size& size);
void start_port_cycle(const Size& size);
void start_lock_convoy(const Size& size);
void start_reader_starvation(const Size& size);
void start_lost_wakeup(const Size& size);
void start_runaway(const Size& size);
void start_deep_recursion(const Size& size);

}  // namespace kernel::workload
