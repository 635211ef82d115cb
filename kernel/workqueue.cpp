#include "kernel/workqueue.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernel/task.hpp"

namespace kernel {

kcdata::kern_return WorkQueue::start(Task& task, const char* name, std::uint32_t workers,
                                     int priority) {
    static constinit std::atomic<std::uint64_t> last_serial_number{0};
    dispatch_queue_ = {last_serial_number.fetch_add(1, std::memory_order_relaxed) + 1, {}};
    std::memcpy(dispatch_queue_.label, name, std::min(std::strlen(name), DispatchQueue::max_label));
    CHECK(count_ == 0 && workers >= 1 && workers <= max_workers);
    for (; count_ < workers; count_++) {
        auto thread =
            thread_create(task, name, work, this, {.priority = priority, .joinable = true});
        if (!thread.ok()) {
            stop();
            return thread.error();
        }
        threads_[count_] = thread.value();
        thread_start(*thread.value());
    }
    return kcdata::KERN_SUCCESS;
}

void WorkQueue::enqueue(WorkItem& item) {
    SchedulerGuard guard;
    CHECK(!stopping_);
    items_.push_back(item);
    parked_.wake_one(guard);
}

void WorkQueue::stop() {
    {
        SchedulerGuard guard;
        stopping_ = true;
        parked_.wake_all(guard);
    }
    for (; count_ > 0; count_--)
        thread_join(*threads_[count_ - 1]);
    SchedulerGuard guard;
    CHECK(items_.empty());
    stopping_ = false;
}

/// Parks until there is work. Null: there will be none any more.
WorkItem* WorkQueue::next() {
    SchedulerGuard guard;
    while (items_.empty()) {
        if (stopping_)
            return nullptr;
        const WaitResult result =
            parked_.wait(guard, {.event = this, .block_hint = kcdata::kThreadWaitParkedWorkQueue});
        CHECK(result == WaitResult::THREAD_AWAKENED);
    }
    return items_.pop_front();
}

void WorkQueue::work(void* argument) {
    auto& queue = *static_cast<WorkQueue*>(argument);
    // Only this thread writes it, and only a stop reads it.
    std::atomic_ref works_for(current_thread().dispatch_queue);
    while (const WorkItem* const item = queue.next()) {
        works_for.store(&queue.dispatch_queue_, std::memory_order_relaxed);
        item->function(item->argument);
        works_for.store(nullptr, std::memory_order_relaxed);
    }
}

}  // namespace kernel
