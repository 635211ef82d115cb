#pragma once

#include <cstdint>

#include "kernel/mutex.hpp"

namespace kernel {

/// A condition variable. A signal that comes while nobody waits is lost: what is waited for is
/// tested under the mutex.
class Condition {
  public:
    constexpr Condition() = default;
    Condition(const Condition&) = delete;
    Condition& operator=(const Condition&) = delete;

    /// Gives `mutex`, which the calling thread owns, back and waits in one step, until it is
    /// signalled or until `deadline` (absolute time), and takes the mutex again. Thread context.
    WaitResult wait_until(Mutex& mutex, std::uint64_t deadline);
    void wait(Mutex& mutex);
    /// Lets the first waiter go on, if there is one. Any context but a stop.
    void signal();
    /// Lets all of them go on.
    void broadcast();

  private:
    Turnstile waiters_{};
};

}  // namespace kernel
