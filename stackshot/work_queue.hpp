#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "stackshot/atomic.hpp"
#include "stackshot/chunk_chain.hpp"
#include "stackshot/record_task_end.hpp"
#include "stackshot/system.hpp"
#include "stackshot/task_part.hpp"

namespace stackshot {

/// A task to record, or a part of one, and what became of it.
struct WorkItem {
    Published<TaskRef> task = TaskRef::none;
    Published<TaskPart> part{};
    /// The records, but for what record_task_end() records of all parts; empty when the request
    /// does not want the task. Written by the CPU that claimed the item, read after the barrier.
    Published<Chunk*> records = nullptr;
    Published<RecordedTask> recorded{};
};

/// A task of many threads is cut into parts, for CPUs to share it: so many parts as give each CPU
/// this number if all threads were of such tasks. The last part to be done then makes a CPU late by
/// no more than this part of its share.
inline constexpr std::size_t parts_per_cpu = 16;
/// But a part of fewer threads costs more than it brings.
inline constexpr std::size_t smallest_part = 16;
/// Items that come of cutting, at most.
constexpr std::size_t max_extra_parts(CpuIndex cpus) {
    return cpus > 1 ? cpus * parts_per_cpu : 0;
}
/// Threads of a part, in a collection of so many threads by so many CPUs.
constexpr std::size_t threads_per_part(std::size_t threads, CpuIndex cpus) {
    const std::size_t share = cpus > 1 ? threads / (cpus * parts_per_cpu) : threads;
    return share < smallest_part ? smallest_part : share;
}

/// Items on their way from the one CPU that finds them to all CPUs that record them.
class WorkQueue {
  public:
    /// Takes `storage` as the places of items. Before any other CPU sees the queue.
    void reset(std::span<Published<WorkItem*>> storage);
    /// Adds an item; false if the queue is full. Only the one producer.
    bool push(WorkItem& item);
    /// An item for the caller alone, or nullptr if there is none at the moment. Any CPU.
    WorkItem* claim();

  private:
    std::span<Published<WorkItem*>> storage_{};
    Atomic<std::size_t> count_{0};
    alignas(64) Atomic<std::size_t> claimed_{0};
};

/// All the work of a collection: the items in the order of the output, and queues of them by how
/// much there is to do. On a machine of equal CPUs there is one queue. On one of P and E cores
/// there are two, and P cores look at the hard one first, E cores at the easy one; either takes
/// from the other before it waits.
///
/// Empty queues are not finished ones: the finder may still be at work. A worker leaves when it
/// found nothing although populated() was true *before* it looked.
class WorkQueues {
  public:
    static constexpr std::uint32_t max_queues = 2;
    /// Bytes of storage for so many items.
    static constexpr std::size_t storage_size(std::size_t capacity, std::uint32_t queues) {
        return capacity * (sizeof(WorkItem) + queues * sizeof(Published<WorkItem*>));
    }
    /// The queue of an item with so many threads, by XNU's rule: of two, ten threads are hard.
    static constexpr std::uint32_t queue_index(std::uint64_t threads, std::uint32_t queues) {
        const std::uint64_t index = threads * (queues - 1) / hard_threads;
        return index < queues - 1 ? static_cast<std::uint32_t>(index) : queues - 1;
    }

    /// Takes `storage` (8-byte aligned) for as many items as there is room for. Before any other
    /// CPU sees the queues.
    void reset(std::span<std::byte> storage, std::uint32_t queues);

    /// Adds the item behind all others; false if there is no room. Only the one producer.
    bool push(TaskRef task, const TaskPart& part, std::uint64_t threads);
    /// Items that there is still room for. Only the one producer.
    std::size_t room() const { return items_.size() - count_; }
    /// Says that no push follows. Only the one producer.
    void set_populated();
    bool populated() const;

    /// An item for the caller alone, a CPU of this kind, or nullptr if there is none at the moment.
    /// Any CPU.
    WorkItem* claim(ClusterType type);

    /// All items in the order they were pushed. After the barrier.
    std::span<WorkItem> items() { return items_.first(count_); }

  private:
    static constexpr std::uint64_t hard_threads = 10;

    std::span<WorkItem> items_{};
    Published<std::size_t> count_ = 0;
    std::uint32_t queue_count_ = 0;
    std::array<WorkQueue, max_queues> queues_{};
    Atomic<bool> populated_{false};
};

}  // namespace stackshot
