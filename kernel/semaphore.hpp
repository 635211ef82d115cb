#pragma once

#include <cstdint>

#include "kernel/turnstile.hpp"

namespace kernel {

/// A counting semaphore. A signal goes to the first waiter, if there is one.
class Semaphore {
  public:
    /// `owner_pid`: the task it belongs to, by default kernel_task.
    constexpr explicit Semaphore(std::uint32_t count = 0, std::int32_t owner_pid = 0)
        : count_(count), waiters_(owner_pid) {}
    Semaphore(const Semaphore&) = delete;
    Semaphore& operator=(const Semaphore&) = delete;

    /// Takes one, waiting for it until `deadline` (absolute time). Thread context, interrupts on.
    WaitResult wait_until(std::uint64_t deadline);
    void wait();
    /// Gives one. Any context but a stop.
    void signal();

  private:
    std::uint32_t count_;
    Turnstile waiters_;
};

}  // namespace kernel
