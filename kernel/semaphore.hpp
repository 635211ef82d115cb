#pragma once

#include <cstdint>

#include "kernel/wait_queue.hpp"

namespace kernel {

/// A counting semaphore. A signal goes to the first waiter, if there is one.
class Semaphore {
  public:
    constexpr explicit Semaphore(std::uint32_t count = 0) : count_(count) {}
    Semaphore(const Semaphore&) = delete;
    Semaphore& operator=(const Semaphore&) = delete;

    /// Takes one, waiting for it until `deadline` (absolute time). Thread context, interrupts on.
    WaitResult wait_until(std::uint64_t deadline);
    void wait();
    /// Gives one. Any context but a stop.
    void signal();

  private:
    std::uint32_t count_;
    WaitQueue waiters_{};
};

}  // namespace kernel
