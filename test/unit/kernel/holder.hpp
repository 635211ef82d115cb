#pragma once

#include <functional>
#include <utility>

#include "kernel/semaphore.hpp"
#include "test/unit/kernel/kernel_threads.hpp"

/// A kernel thread that does what it is told, one step behind the other: takes a lock, waits, gives
/// it back. All steps are finished when it goes away.
class Holder {
  public:
    explicit Holder(int priority) : thread_(threads_.start([this] { serve(); }, priority)) {}
    ~Holder() { end(); }

    /// Begins a step, which need not come to an end by itself.
    void begin(std::function<void()> step) {
        step_ = std::move(step);
        go_.signal();
    }
    void finish() { done_.wait(); }
    void run(std::function<void()> step) {
        begin(std::move(step));
        finish();
    }
    /// Ends the thread.
    void end() {
        if (!std::exchange(ended_, true))
            begin(nullptr);
        threads_.join();
    }
    kernel::Thread& thread() { return thread_; }

  private:
    void serve() {
        for (;;) {
            go_.wait();
            if (step_ == nullptr)
                return;
            step_();
            done_.signal();
        }
    }

    kernel::Semaphore go_{}, done_{};
    std::function<void()> step_{};
    bool ended_ = false;
    KernelThreads threads_{};
    kernel::Thread& thread_;
};
