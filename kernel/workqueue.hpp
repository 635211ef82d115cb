#pragma once

#include <cstddef>
#include <cstdint>

#include "kcdata/result.hpp"
#include "kernel/list.hpp"
#include "kernel/turnstile.hpp"

namespace kernel {

struct Task;

/// What libdispatch tells a capture of a queue.
struct DispatchQueue {
    static constexpr std::size_t max_label = 63;

    std::uint64_t serial_number = 0;  ///< never two the same
    char label[max_label + 1] = {};
};

/// Work for a work queue. The caller's; not touched any more once `function` is called.
struct WorkItem {
    void (*function)(void* argument) = nullptr;
    void* argument = nullptr;
    ListLink<WorkItem> link{};
};

/// Worker threads that do work in the order it comes, and park while there is none.
class WorkQueue {
  public:
    static constexpr std::uint32_t max_workers = 16;

    constexpr WorkQueue() = default;
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;

    /// Starts `workers` (1 to max_workers) threads of `task`, named `name`, as the queue is.
    /// KERN_RESOURCE_SHORTAGE: no memory; then there are none. Once; thread context.
    kcdata::kern_return start(Task& task, const char* name, std::uint32_t workers,
                              int priority = BASEPRI_DEFAULT);
    /// Hands `item` to the next worker that is free. Any context but a stop.
    void enqueue(WorkItem& item);
    /// Does what was enqueued, and ends the workers. Once, if it was started; nothing may be
    /// enqueued meanwhile or later. Thread context.
    void stop();
    const DispatchQueue& dispatch_queue() const { return dispatch_queue_; }

  private:
    static void work(void* queue);
    WorkItem* next();

    DispatchQueue dispatch_queue_{};
    List<WorkItem, &WorkItem::link> items_{};
    bool stopping_ = false;
    std::uint32_t count_ = 0;
    Thread* threads_[max_workers] = {};
    /// Workers without work.
    Turnstile parked_{};
};

}  // namespace kernel
