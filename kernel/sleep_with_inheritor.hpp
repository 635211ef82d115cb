#pragma once

#include <cstdint>

#include "kernel/turnstile.hpp"

namespace kernel {

/// Something to wait for, of which is known which thread will bring it about: that thread inherits
/// the priority of the sleepers. XNU's sleep with inheritor, with the turnstile in the object
/// instead of in a table of events.
class SleepWithInheritor {
  public:
    constexpr SleepWithInheritor() = default;
    SleepWithInheritor(const SleepWithInheritor&) = delete;
    SleepWithInheritor& operator=(const SleepWithInheritor&) = delete;

    /// Waits until it is woken, or until `deadline` (absolute time). `inheritor`, not the calling
    /// thread, becomes the inheritor for all sleepers; null: nobody is. Thread context, interrupts
    /// on.
    WaitResult sleep(Thread* inheritor, std::uint64_t deadline = no_deadline);
    /// Wakes the first sleeper, which becomes the inheritor of the others. False if nobody sleeps.
    /// Any context but a stop.
    bool wakeup_one();
    /// Wakes all of them.
    void wakeup_all();
    /// Makes another thread the inheritor, if anybody sleeps. Any context but a stop.
    void change_inheritor(Thread* inheritor);

  private:
    void forget_inheritor(SchedulerGuard&);

    Turnstile sleepers_{};
};

}  // namespace kernel
