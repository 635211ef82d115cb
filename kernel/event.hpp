#pragma once

#include "kernel/turnstile.hpp"

namespace kernel {

/// Something that has happened or has not: set() lets everybody go on who waits, and everybody who
/// comes later, until clear().
class Event {
  public:
    constexpr Event() = default;
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    /// Waits until it is set, or until `deadline` (absolute time). Thread context, interrupts on.
    WaitResult wait_until(std::uint64_t deadline);
    void wait();
    /// Any context but a stop.
    void set();
    void clear();

  private:
    bool set_ = false;
    Turnstile waiters_{};
};

}  // namespace kernel
