#include "kernel/rw_lock.hpp"

#include <utility>

namespace kernel {

using kcdata::kThreadWaitKernelRWLockRead;
using kcdata::kThreadWaitKernelRWLockUpgrade;
using kcdata::kThreadWaitKernelRWLockWrite;

void RwLock::lock_shared() {
    CHECK(machine::interrupts_enabled());
    SchedulerGuard guard;
    Thread& self = current_thread();
    CHECK(owner() != &self);
    if (may_share(self))
        ++readers_;
    else
        wait(guard, kThreadWaitKernelRWLockRead);
    ++self.lock_count;
}

void RwLock::lock_exclusive() {
    CHECK(machine::interrupts_enabled());
    SchedulerGuard guard;
    Thread& self = current_thread();
    CHECK(owner() != &self);
    if (owner() == nullptr && readers_ == 0)
        turnstile_.set_inheritor(guard, &self);
    else
        wait(guard, kThreadWaitKernelRWLockWrite);
    CHECK(owner() == &self);
    ++self.lock_count;
}

bool RwLock::try_lock_shared() {
    SchedulerGuard guard;
    Thread& self = current_thread();
    if (!may_share(self))
        return false;
    ++readers_;
    ++self.lock_count;
    return true;
}

bool RwLock::try_lock_exclusive() {
    SchedulerGuard guard;
    Thread& self = current_thread();
    if (owner() != nullptr || readers_ != 0)
        return false;
    turnstile_.set_inheritor(guard, &self);
    ++self.lock_count;
    return true;
}

void RwLock::unlock_shared() {
    SchedulerGuard guard;
    CHECK(readers_ > 0 && owner() == nullptr);
    --current_thread().lock_count;
    --readers_;
    grant(guard);
}

void RwLock::unlock_exclusive() {
    SchedulerGuard guard;
    Thread& self = current_thread();
    CHECK(owner() == &self);
    --self.lock_count;
    const Turnstile::Change change(guard, turnstile_);
    turnstile_.set_inheritor(guard, nullptr);
    grant(guard);
}

bool RwLock::upgrade() {
    CHECK(machine::interrupts_enabled());
    SchedulerGuard guard;
    Thread& self = current_thread();
    CHECK(readers_ > 0 && owner() == nullptr);
    if (upgrader_ != nullptr) {
        --self.lock_count;
        --readers_;
        grant(guard);
        return false;
    }
    if (readers_ == 1) {
        readers_ = 0;
        turnstile_.set_inheritor(guard, &self);
    } else {
        upgrader_ = &self;
        wait(guard, kThreadWaitKernelRWLockUpgrade);
    }
    CHECK(owner() == &self);
    return true;
}

void RwLock::downgrade() {
    SchedulerGuard guard;
    CHECK(owner() == &current_thread());
    const Turnstile::Change change(guard, turnstile_);
    turnstile_.set_inheritor(guard, nullptr);
    ++readers_;
    grant(guard);
}

/// Whether it would be granted to `thread`, as a reader, at once.
bool RwLock::may_share(const Thread& thread) const {
    const Thread* const first = turnstile_.first();
    return owner() == nullptr && upgrader_ == nullptr &&
           (first == nullptr || first->sched_pri < thread.sched_pri);
}

void RwLock::wait(SchedulerGuard& guard, std::uint8_t block_hint) {
    const WaitResult result = turnstile_.wait(guard, {this, block_hint, /*uninterruptible=*/true});
    CHECK(result == WaitResult::THREAD_AWAKENED);
}

/// Gives it to those who wait, as far as it is free for them.
void RwLock::grant(SchedulerGuard& guard) {
    const Turnstile::Change change(guard, turnstile_);
    if (upgrader_ != nullptr) {
        if (readers_ > 1)
            return;
        readers_ = 0;
        Thread* const upgrader = std::exchange(upgrader_, nullptr);
        turnstile_.wake(guard, *upgrader);
        turnstile_.set_inheritor(guard, upgrader);
        return;
    }
    while (Thread* const first = turnstile_.first()) {
        if (first->block_hint == kThreadWaitKernelRWLockWrite) {
            if (readers_ == 0) {
                turnstile_.wake(guard, *first);
                turnstile_.set_inheritor(guard, first);
            }
            return;
        }
        ++readers_;
        turnstile_.wake(guard, *first);
    }
}

}  // namespace kernel
