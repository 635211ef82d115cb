#include "kernel/wait_queue.hpp"

#include <bit>

namespace kernel {

WaitResult WaitQueue::wait(SchedulerGuard& guard, const void* event, std::uint64_t deadline,
                           bool uninterruptible) {
    Thread& self = current_thread();
    Thread* before = waiters_.last();
    while (before != nullptr && before->priority < self.priority)
        before = ThreadQueue::previous(*before);
    waiters_.insert_after(before, self);
    self.wait_queue = this;
    return scheduler::wait(guard, std::bit_cast<std::uint64_t>(event), deadline, uninterruptible);
}

Thread* WaitQueue::wake_one(SchedulerGuard& guard) {
    Thread* const thread = waiters_.pop_front();
    if (thread != nullptr)
        scheduler::unblock(guard, *thread, WaitResult::THREAD_AWAKENED);
    return thread;
}

void WaitQueue::wake_all(SchedulerGuard& guard) {
    while (wake_one(guard) != nullptr) {
    }
}

void WaitQueue::expire(SchedulerGuard&, Thread& thread) {
    CHECK(thread.wait_queue == this);
    waiters_.remove(thread);
}

}  // namespace kernel
