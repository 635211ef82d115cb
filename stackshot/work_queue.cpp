#include "stackshot/work_queue.hpp"

namespace stackshot {

void WorkQueue::reset(std::span<WorkItem> storage) {
    storage_ = storage;
    count_.store(0, std::memory_order_relaxed);
    claimed_.store(0, std::memory_order_relaxed);
    populated_.store(false, std::memory_order_relaxed);
}

bool WorkQueue::push(TaskRef task) {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == storage_.size())
        return false;
    storage_[count] = WorkItem{task, nullptr};
    // Release: whoever sees the count sees the item.
    count_.store(count + 1, std::memory_order_release);
    return true;
}

// Release, acquire: whoever sees populated sees every push before it.
void WorkQueue::set_populated() {
    populated_.store(true, std::memory_order_release);
}
bool WorkQueue::populated() const {
    return populated_.load(std::memory_order_acquire);
}

WorkItem* WorkQueue::claim() {
    std::size_t next = claimed_.load(std::memory_order_relaxed);
    do {
        if (next >= count_.load(std::memory_order_acquire))
            return nullptr;
    } while (!claimed_.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
    return &storage_[next];
}

std::span<WorkItem> WorkQueue::items() {
    return storage_.first(count_.load(std::memory_order_acquire));
}

}  // namespace stackshot
