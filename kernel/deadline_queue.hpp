#pragma once

#include "kernel/thread.hpp"

namespace kernel {

/// Threads by deadline: a pairing heap through Thread::deadline_links. The earliest one is found at
/// once; insertion is constant, removal logarithmic, amortized. The scheduler lock guards it.
class DeadlineQueue {
  public:
    /// The thread with the earliest deadline, null if there is none. Of equal deadlines any.
    Thread* first() const { return root_; }
    void insert(Thread& thread);
    /// `thread` is in this queue.
    void remove(Thread& thread);

  private:
    static Thread* merge(Thread* a, Thread* b);
    static Thread* merge_siblings(Thread* first);

    Thread* root_ = nullptr;
};

}  // namespace kernel
