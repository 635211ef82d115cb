#include "kernel/condition.hpp"

namespace kernel {

WaitResult Condition::wait_until(Mutex& mutex, std::uint64_t deadline) {
    CHECK(machine::interrupts_enabled());
    SchedulerGuard guard;
    mutex.unlock(guard);
    const WaitResult result = waiters_.wait(
        guard, {.event = this, .block_hint = kcdata::kThreadWaitPThreadCondVar}, deadline);
    mutex.lock(guard);
    return result;
}

void Condition::wait(Mutex& mutex) {
    const WaitResult result = wait_until(mutex, no_deadline);
    CHECK(result == WaitResult::THREAD_AWAKENED);
}

void Condition::signal() {
    SchedulerGuard guard;
    waiters_.wake_one(guard);
}

void Condition::broadcast() {
    SchedulerGuard guard;
    waiters_.wake_all(guard);
}

}  // namespace kernel
