#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernel/scheduler.hpp"
#include "kernel/sleep.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"
#include "test/unit/kernel/fake_machine.hpp"

/// Kernel threads that run std::functions, for test bodies inside fake_machine::run().
class KernelThreads {
  public:
    explicit KernelThreads(kernel::Task& task = kernel::kernel_task()) : task_(task) {}
    ~KernelThreads() { join(); }
    KernelThreads(const KernelThreads&) = delete;
    KernelThreads& operator=(const KernelThreads&) = delete;

    kernel::Thread& start(std::function<void()> body, int priority = kernel::BASEPRI_DEFAULT,
                          const char* name = "worker") {
        kernel::Thread& thread = create(std::move(body), priority, name);
        kernel::thread_start(thread);
        return thread;
    }
    kernel::Thread& create(std::function<void()> body, int priority = kernel::BASEPRI_DEFAULT,
                           const char* name = "worker") {
        bodies_.push_back(std::make_unique<std::function<void()>>(std::move(body)));
        const auto entry = [](void* argument) {
            (*static_cast<std::function<void()>*>(argument))();
        };
        auto thread = kernel::thread_create(task_, name, entry, bodies_.back().get(),
                                            {.priority = priority, .joinable = true});
        threads_.push_back(thread.value());
        return *thread.value();
    }
    /// Starts what was only created.
    void start_all() {
        for (kernel::Thread* thread : threads_)
            kernel::thread_start(*thread);
    }
    void join() {
        for (kernel::Thread* thread : threads_)
            kernel::thread_join(*thread);
        threads_.clear();
    }

  private:
    kernel::Task& task_;
    std::vector<std::unique_ptr<std::function<void()>>> bodies_{};
    std::vector<kernel::Thread*> threads_{};
};

/// Whether `thread` waits for `event` now.
inline bool waits_for(const kernel::Thread& thread, const void* event) {
    kernel::SchedulerGuard guard;
    return (thread.state & kernel::SS_TH_WAIT) != 0 &&
           thread.wait_event == reinterpret_cast<std::uint64_t>(event);
}

/// Waits until `condition` holds. Threads of any priority run meanwhile.
template <typename Condition>
void await(Condition condition) {
    while (!condition())
        kernel::sleep_microseconds(50);
}
inline void await_waiting(const kernel::Thread& thread, const void* event) {
    await([&] { return waits_for(thread, event); });
}

/// Ticks of the fake machine.
inline constexpr std::uint64_t ms = 1'000'000;

/// Computes for `time`, taking interrupts as a CPU does.
inline void compute(std::uint64_t time) {
    const std::uint64_t end = kernel::machine::absolute_time() + time;
    while (kernel::machine::absolute_time() < end)
        fake_machine::poll();
}
