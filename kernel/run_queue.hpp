#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "kernel/thread.hpp"

namespace kernel {

/// Threads that are ready to run: one queue a priority. The scheduler lock guards it.
class RunQueue {
  public:
    /// The priority of the thread pop() would return; -1 if there is none.
    int highest_priority() const {
        for (std::size_t word = words; word-- > 0;)
            if (occupied_[word] != 0)
                return static_cast<int>(word * 64 + 63) - std::countl_zero(occupied_[word]);
        return -1;
    }
    /// Behind all threads of its priority.
    void push_back(Thread& thread) {
        queue_of(thread).push_back(thread);
        mark(thread.sched_pri);
    }
    /// In front of all threads of its priority.
    void push_front(Thread& thread) {
        queue_of(thread).push_front(thread);
        mark(thread.sched_pri);
    }
    /// Takes out the first thread of the highest priority; null if there is none.
    Thread* pop() {
        const int priority = highest_priority();
        if (priority < 0)
            return nullptr;
        Thread* const thread = queues_[static_cast<std::size_t>(priority)].first();
        remove(*thread);
        return thread;
    }
    /// `thread` is in this queue, and has the priority it was put in with.
    void remove(Thread& thread) {
        ThreadQueue& queue = queue_of(thread);
        queue.remove(thread);
        if (queue.empty())
            occupied_[static_cast<std::size_t>(thread.sched_pri) / 64] &= ~bit_of(thread.sched_pri);
    }

  private:
    static constexpr std::size_t words = (MAXPRI + 1) / 64;

    static std::uint64_t bit_of(int priority) { return std::uint64_t{1} << (priority % 64); }
    ThreadQueue& queue_of(const Thread& thread) {
        return queues_[static_cast<std::size_t>(thread.sched_pri)];
    }
    void mark(int priority) {
        occupied_[static_cast<std::size_t>(priority) / 64] |= bit_of(priority);
    }

    std::array<ThreadQueue, MAXPRI + 1> queues_{};
    std::array<std::uint64_t, words> occupied_{};
};

}  // namespace kernel
