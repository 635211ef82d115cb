#pragma once

#include "kernel/scheduler.hpp"
#include "kernel/thread.hpp"

namespace kernel {

/// Threads that wait for one thing: by priority, in order of arrival within a priority. All waiting
/// in the kernel is done here.
class WaitQueue {
  public:
    /// Blocks the calling thread until it is taken out by wake_one() or wake_all(), or until
    /// `deadline` (absolute time). `event` names what it waits for; `uninterruptible` adds
    /// SS_TH_UNINT to its state. The lock is held on return, but not all the time. Thread context.
    WaitResult wait(SchedulerGuard&, const void* event, std::uint64_t deadline = no_deadline,
                    bool uninterruptible = false);
    /// Makes the first waiter runnable and returns it; null if nobody waits. Any context but a
    /// stop.
    Thread* wake_one(SchedulerGuard&);
    void wake_all(SchedulerGuard&);

    /// Takes out a thread whose deadline has come.
    void expire(SchedulerGuard&, Thread& thread);

  private:
    ThreadQueue waiters_{};
};

}  // namespace kernel
