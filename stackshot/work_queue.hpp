#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "stackshot/chunk_chain.hpp"
#include "stackshot/system.hpp"

namespace stackshot {

/// A task to record, and what became of it. Its index in the queue is its place in the output.
struct WorkItem {
    TaskRef task = TaskRef::none;
    /// The task's records; empty when the request does not want the task. Written by the CPU that
    /// claimed the item, read after the barrier.
    Chunk* records = nullptr;
};

/// Tasks on their way from the one CPU that finds them to all CPUs that record them.
///
/// An empty queue is not a finished one: the finder may still be at work. A worker leaves when it
/// found nothing although populated() was true *before* it looked.
class WorkQueue {
  public:
    /// Takes `storage` as the items' place. Before any other CPU sees the queue.
    void reset(std::span<WorkItem> storage);

    /// Adds a task; false if the queue is full. Only the one producer.
    bool push(TaskRef task);
    /// Says that no push follows. Only the one producer.
    void set_populated();
    bool populated() const;

    /// An item for the caller alone, or nullptr if there is none at the moment. Any CPU.
    WorkItem* claim();

    /// All items in the order they were pushed. After the barrier.
    std::span<WorkItem> items();

  private:
    std::span<WorkItem> storage_{};
    std::atomic<std::size_t> count_{0};
    std::atomic<bool> populated_{false};
    alignas(64) std::atomic<std::size_t> claimed_{0};
};

}  // namespace stackshot
