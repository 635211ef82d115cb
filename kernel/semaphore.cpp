#include "kernel/semaphore.hpp"

namespace kernel {

WaitResult Semaphore::wait_until(std::uint64_t deadline) {
    CHECK(machine::interrupts_enabled());
    SchedulerGuard guard;
    if (count_ == 0)
        return waiters_.wait(guard, {.event = this, .block_hint = kcdata::kThreadWaitSemaphore},
                             deadline);
    --count_;
    return WaitResult::THREAD_AWAKENED;
}

void Semaphore::wait() {
    const WaitResult result = wait_until(no_deadline);
    CHECK(result == WaitResult::THREAD_AWAKENED);
}

void Semaphore::signal() {
    SchedulerGuard guard;
    if (waiters_.wake_one(guard) == nullptr) {
        CHECK(count_ != UINT32_MAX);
        ++count_;
    }
}

}  // namespace kernel
