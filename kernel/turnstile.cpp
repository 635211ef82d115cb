#include "kernel/turnstile.hpp"

#include <algorithm>
#include <utility>

namespace kernel {

WaitResult Turnstile::wait(SchedulerGuard& guard, const WaitFor& what, std::uint64_t deadline) {
    Thread& self = current_thread();
    {
        const Change change(guard, *this);
        scheduler::assert_wait(guard, what, deadline);
        // Release: a reader that sees it sees an odd sequence number, or all of the change.
        std::atomic_ref(self.turnstile).store(this, std::memory_order_release);
        insert(self);
    }
    update_priority(guard, inheritor_);
    scheduler::block(guard);
    return self.wait_result;
}

void Turnstile::wake(SchedulerGuard& guard, Thread& waiter) {
    CHECK(waiter.turnstile == this);
    {
        const Change change(guard, *this);
        remove(waiter);
        scheduler::unblock(guard, waiter, WaitResult::THREAD_AWAKENED);
    }
    update_priority(guard, inheritor_);
}

Thread* Turnstile::wake_one(SchedulerGuard& guard) {
    Thread* const thread = waiters_.first();
    if (thread != nullptr)
        wake(guard, *thread);
    return thread;
}

void Turnstile::wake_all(SchedulerGuard& guard) {
    while (wake_one(guard) != nullptr) {
    }
}

void Turnstile::expire(SchedulerGuard& guard, Thread& thread) {
    CHECK(thread.turnstile == this);
    {
        const Change change(guard, *this);
        remove(thread);
        scheduler::unblock(guard, thread, WaitResult::THREAD_TIMED_OUT);
    }
    update_priority(guard, inheritor_);
}

void Turnstile::set_inheritor(SchedulerGuard& guard, Thread* inheritor, std::uint8_t hops) {
    Thread* const before = inheritor_;
    if (before == inheritor && hops_ == hops)
        return;
    {
        const Change change(guard, *this);
        if (before != nullptr)
            unlink();
        // Release: as for Thread::turnstile.
        std::atomic_ref(hops_).store(hops, std::memory_order_release);
        std::atomic_ref(inheritor_).store(inheritor, std::memory_order_release);
        if (inheritor != nullptr)
            link(*inheritor);
    }
    update_priority(guard, before);
    update_priority(guard, inheritor);
}

void Turnstile::set_owner_pid(SchedulerGuard& guard, std::int32_t pid) {
    const Change change(guard, *this);
    std::atomic_ref(owner_pid_).store(pid, std::memory_order_release);
}

void Turnstile::set_port_label(SchedulerGuard& guard, const PortLabel* label) {
    const Change change(guard, *this);
    std::atomic_ref(port_label_).store(label, std::memory_order_release);
}

void Turnstile::renounce_all(SchedulerGuard& guard, Thread& thread) {
    while (thread.inherited != nullptr)
        thread.inherited->set_inheritor(guard, nullptr);
}

void Turnstile::update_priority(SchedulerGuard& guard, Thread* thread) {
    for (int hops = 0; thread != nullptr && hops < max_hops; hops++) {
        std::int16_t promotion = 0;
        for (const Turnstile* turnstile = thread->inherited; turnstile != nullptr;
             turnstile = turnstile->inheritor_link_.next)
            promotion = std::max(promotion, turnstile->priority_);
        thread->promotion_pri = promotion;
        const std::int16_t priority = std::max(thread->base_pri, thread->promotion_pri);
        if (priority == thread->sched_pri)
            return;
        Turnstile* const blocked_on = thread->turnstile;
        if (blocked_on == nullptr) {
            scheduler::set_sched_pri(guard, *thread, priority);
            return;
        }
        const Change change(guard, *blocked_on);
        blocked_on->remove(*thread);
        scheduler::set_sched_pri(guard, *thread, priority);
        blocked_on->insert(*thread);
        thread = blocked_on->inheritor_;
    }
}

void Turnstile::insert(Thread& thread) {
    Thread* before = waiters_.last();
    while (before != nullptr && before->sched_pri < thread.sched_pri)
        before = ThreadQueue::previous(*before);
    waiters_.insert_after(before, thread);
    priority_ = waiters_.first()->sched_pri;
}

void Turnstile::remove(Thread& thread) {
    waiters_.remove(thread);
    priority_ = waiters_.empty() ? 0 : waiters_.first()->sched_pri;
}

void Turnstile::link(Thread& inheritor) {
    inheritor_link_ = {inheritor.inherited, nullptr};
    if (inheritor.inherited != nullptr)
        inheritor.inherited->inheritor_link_.previous = this;
    inheritor.inherited = this;
}

void Turnstile::unlink() {
    const auto [next, previous] = inheritor_link_;
    (previous != nullptr ? previous->inheritor_link_.next : inheritor_->inherited) = next;
    if (next != nullptr)
        next->inheritor_link_.previous = previous;
    inheritor_link_ = {};
}

}  // namespace kernel
