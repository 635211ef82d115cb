#include "kernel/mutex.hpp"

namespace kernel {

void Mutex::lock() {
    CHECK(machine::interrupts_enabled());
    SchedulerGuard guard;
    Thread& self = current_thread();
    CHECK(owner_ != &self);
    if (owner_ == nullptr) {
        owner_ = &self;
        return;
    }
    const WaitResult result = waiters_.wait(guard, this, no_deadline, true);
    CHECK(result == WaitResult::THREAD_AWAKENED && owner_ == &self);
}

bool Mutex::try_lock() {
    SchedulerGuard guard;
    if (owner_ != nullptr)
        return false;
    owner_ = &current_thread();
    return true;
}

void Mutex::unlock() {
    SchedulerGuard guard;
    CHECK(owner_ == &current_thread());
    owner_ = waiters_.wake_one(guard);
}

}  // namespace kernel
