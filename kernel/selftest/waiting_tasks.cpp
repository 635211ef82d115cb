#include "kernel/selftest/waiting_tasks.hpp"

#include <atomic>

#include "kernel/format_text.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"

namespace kernel::selftest {
namespace {

/// Nobody ever signals it.
constinit Semaphore never;
std::atomic<std::size_t> arrived{0};

[[gnu::noinline]] void wait_at_depth(std::size_t depth) {
    if (depth != 0) {
        wait_at_depth(depth - 1);
    } else {
        arrived.fetch_add(1, std::memory_order_relaxed);
        never.wait();
    }
}

void wait_thread(void* depth) {
    wait_at_depth(reinterpret_cast<std::size_t>(depth));
}

}  // namespace

bool start_waiting_tasks(Verdict& verdict, const WaitingTasks& wanted) {
    const std::size_t expected =
        arrived.load(std::memory_order_relaxed) + wanted.tasks * wanted.threads_per_task;
    for (std::size_t t = 0; t < wanted.tasks; t++) {
        char name[32];
        format_to(name, sizeof(name), "waiting-%zu", t);
        auto task = task_create(name);
        if (!task.ok()) {
            verdict.fail("no memory for task %zu", t);
            return false;
        }
        for (std::size_t i = 0; i < wanted.threads_per_task; i++) {
            format_to(name, sizeof(name), "wait-%zu.%zu", t, i);
            auto thread = thread_create(*task.value(), name, wait_thread,
                                        reinterpret_cast<void*>(wanted.depth));
            if (!thread.ok()) {
                verdict.fail("no memory for thread %zu of task %zu", i, t);
                return false;
            }
            thread_start(*thread.value());
        }
        task_release(*task.value());
    }
    for (int patience = 6000; arrived.load(std::memory_order_relaxed) != expected; patience--) {
        if (patience == 0) {
            verdict.fail("%zu threads do not wait",
                         expected - arrived.load(std::memory_order_relaxed));
            return false;
        }
        sleep_milliseconds(10);
    }
    // The last ones are between their count and their wait.
    sleep_milliseconds(100);
    return true;
}

}  // namespace kernel::selftest
