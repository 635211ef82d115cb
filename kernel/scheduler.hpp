#pragma once

#include <cstdint>

#include "kernel/spinlock.hpp"
#include "kernel/thread.hpp"

/// Preemptive scheduling by fixed priority, round robin within a priority, over all CPUs.
///
/// There is one run queue and one lock, the scheduler lock, for it and for every state a thread can
/// be in: what a wait tests and the wait itself are one step under it, so that no wake-up is lost.
/// A CPU that switches threads holds the lock across the switch; the thread it switches to goes on
/// holding it.
namespace kernel {

/// Holds the scheduler lock, with interrupts off. Any context but a stop. A function that takes one
/// wants the lock held.
class SchedulerGuard {
  public:
    SchedulerGuard();
    SchedulerGuard(const SchedulerGuard&) = delete;
    SchedulerGuard& operator=(const SchedulerGuard&) = delete;

  private:
    SpinLockGuard guard_;
};

namespace scheduler {

/// How long a thread runs before another one of its priority gets the CPU.
inline constexpr std::uint64_t quantum_milliseconds = 10;

/// Makes the calling context the idle thread of this CPU, which takes part in scheduling from now
/// on. Interrupts off; once on each CPU.
void adopt_idle_thread(SchedulerGuard&, Thread& idle);
/// What an idle thread does. Interrupts on or off.
[[noreturn]] void idle();

/// The calling thread waits from now on, until unblock() or until `deadline` (absolute time):
/// block() is to follow. Thread context.
void assert_wait(SchedulerGuard&, const WaitFor& what, std::uint64_t deadline = no_deadline);
/// Makes a thread that waits, or was never started, ready to run. Any context but a stop.
void unblock(SchedulerGuard&, Thread& thread, WaitResult result);
/// Changes what a thread is scheduled at. For turnstiles only: what a thread inherits is counted
/// there. Any context but a stop.
void set_sched_pri(SchedulerGuard&, Thread& thread, std::int16_t priority);
/// Lets the threads of the same priority that are ready run first. Thread context.
void yield();

/// What a thread that has never run begins with, the scheduler lock held: gives it back and unmasks
/// interrupts.
void begin_thread();
/// Switches away from the calling thread, which has said in its state why it is not to run. The
/// lock is held on return, but not all the time.
void block(SchedulerGuard&);

// Interrupts. Called by the handlers of this CPU, interrupts off.
/// The CPU's timer has fired.
void timer_interrupt();
/// At the end of every interrupt: switches to another thread if there is reason to.
void preempt();

}  // namespace scheduler
}  // namespace kernel
