#include "stackshot/work_queue.hpp"

#include <algorithm>
#include <new>

namespace stackshot {

void WorkQueue::reset(std::span<Published<WorkItem*>> storage) {
    storage_ = storage;
    count_.store(0, std::memory_order_relaxed);
    claimed_.store(0, std::memory_order_relaxed);
}

bool WorkQueue::push(WorkItem& item) {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == storage_.size())
        return false;
    storage_[count] = &item;
    // Release: whoever sees the count sees the item.
    count_.store(count + 1, std::memory_order_release);
    return true;
}

WorkItem* WorkQueue::claim() {
    std::size_t next = claimed_.load(std::memory_order_relaxed);
    do {
        if (next >= count_.load(std::memory_order_acquire))
            return nullptr;
    } while (!claimed_.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
    return storage_[next];
}

void WorkQueues::reset(std::span<std::byte> storage, std::uint32_t queues) {
    queue_count_ = std::clamp<std::uint32_t>(queues, 1, max_queues);
    const std::size_t capacity = storage.size() / storage_size(1, queue_count_);
    items_ = {};
    count_ = 0;
    populated_.store(false, std::memory_order_relaxed);
    if (capacity != 0)
        items_ = {new (storage.data()) WorkItem[capacity], capacity};
    storage = storage.subspan(items_.size_bytes());
    for (std::uint32_t queue = 0; queue < queue_count_; ++queue) {
        std::span<Published<WorkItem*>> places;
        if (capacity != 0)
            places = {new (storage.data()) Published<WorkItem*>[capacity], capacity};
        queues_[queue].reset(places);
        storage = storage.subspan(places.size_bytes());
    }
}

bool WorkQueues::push(TaskRef task, const TaskPart& part, std::uint64_t threads) {
    if (room() == 0)
        return false;
    WorkItem& item = items_[count_];
    item.task = task;
    item.part = part;
    count_ = count_ + 1;
    return queues_[queue_index(threads, queue_count_)].push(item);
}

// Release, acquire: whoever sees populated sees every push before it.
void WorkQueues::set_populated() {
    populated_.store(true, std::memory_order_release);
}
bool WorkQueues::populated() const {
    return populated_.load(std::memory_order_acquire);
}

WorkItem* WorkQueues::claim(ClusterType type) {
    for (std::uint32_t turn = 0; turn < queue_count_; ++turn) {
        const std::uint32_t queue = type == ClusterType::E ? turn : queue_count_ - 1 - turn;
        if (WorkItem* item = queues_[queue].claim(); item != nullptr)
            return item;
    }
    return nullptr;
}

}  // namespace stackshot
