#include "kernel/event.hpp"

namespace kernel {

WaitResult Event::wait_until(std::uint64_t deadline) {
    CHECK(machine::interrupts_enabled());
    SchedulerGuard guard;
    return set_ ? WaitResult::THREAD_AWAKENED : waiters_.wait(guard, {.event = this}, deadline);
}

void Event::wait() {
    const WaitResult result = wait_until(no_deadline);
    CHECK(result == WaitResult::THREAD_AWAKENED);
}

void Event::set() {
    SchedulerGuard guard;
    set_ = true;
    waiters_.wake_all(guard);
}

void Event::clear() {
    SchedulerGuard guard;
    set_ = false;
}

}  // namespace kernel
