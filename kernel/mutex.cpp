#include "kernel/mutex.hpp"

namespace kernel {

void Mutex::lock() {
    CHECK(machine::interrupts_enabled());
    SchedulerGuard guard;
    lock(guard);
}

bool Mutex::try_lock() {
    SchedulerGuard guard;
    if (owner() != nullptr)
        return false;
    lock(guard);
    return true;
}

void Mutex::unlock() {
    SchedulerGuard guard;
    unlock(guard);
}

void Mutex::lock(SchedulerGuard& guard) {
    Thread& self = current_thread();
    CHECK(owner() != &self);
    if (owner() == nullptr) {
        turnstile_.set_inheritor(guard, &self);
    } else {
        const WaitResult result = turnstile_.wait(
            guard, {this, kcdata::kThreadWaitKernelMutex, /*uninterruptible=*/true});
        CHECK(result == WaitResult::THREAD_AWAKENED && owner() == &self);
    }
    ++self.lock_count;
}

void Mutex::unlock(SchedulerGuard& guard) {
    Thread& self = current_thread();
    CHECK(owner() == &self);
    --self.lock_count;
    const Turnstile::Change change(guard, turnstile_);
    turnstile_.set_inheritor(guard, turnstile_.wake_one(guard));
}

}  // namespace kernel
