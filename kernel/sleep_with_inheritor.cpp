#include "kernel/sleep_with_inheritor.hpp"

namespace kernel {

WaitResult SleepWithInheritor::sleep(Thread* inheritor, std::uint64_t deadline) {
    CHECK(machine::interrupts_enabled());
    SchedulerGuard guard;
    CHECK(inheritor != &current_thread());
    sleepers_.set_inheritor(guard, inheritor);
    const WaitResult result = sleepers_.wait(
        guard, {.event = this, .block_hint = kcdata::kThreadWaitSleepWithInheritor}, deadline);
    forget_inheritor(guard);
    return result;
}

bool SleepWithInheritor::wakeup_one() {
    SchedulerGuard guard;
    const Turnstile::Change change(guard, sleepers_);
    Thread* const woken = sleepers_.wake_one(guard);
    if (woken != nullptr)
        sleepers_.set_inheritor(guard, woken);
    forget_inheritor(guard);
    return woken != nullptr;
}

void SleepWithInheritor::wakeup_all() {
    SchedulerGuard guard;
    const Turnstile::Change change(guard, sleepers_);
    sleepers_.wake_all(guard);
    forget_inheritor(guard);
}

void SleepWithInheritor::change_inheritor(Thread* inheritor) {
    SchedulerGuard guard;
    if (sleepers_.first() != nullptr)
        sleepers_.set_inheritor(guard, inheritor);
}

void SleepWithInheritor::forget_inheritor(SchedulerGuard& guard) {
    if (sleepers_.first() == nullptr)
        sleepers_.set_inheritor(guard, nullptr);
}

}  // namespace kernel
