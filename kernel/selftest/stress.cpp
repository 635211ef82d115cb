#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "kernel/boot_arguments.hpp"
#include "kernel/console.hpp"
#include "kernel/format_text.hpp"
#include "kernel/kernel_stack.hpp"
#include "kernel/machine.hpp"
#include "kernel/page_allocator.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/sleep.hpp"
#include "kernel/stackshot_service.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"
#include "kernel/workload/workload.hpp"

// Captures in a row while all CPUs are busy and tasks and threads come and go. Each is sent, for
// the test outside to look at; afterwards memory is what it was.
namespace kernel::selftest {
namespace {

std::atomic<bool> enough{false};
std::atomic<std::uint64_t> tasks_made{0};
std::atomic<std::uint64_t> failures{0};

constexpr std::size_t threads_per_task = 3;

void live_shortly(void* seed) {
    workload::Random random(reinterpret_cast<std::uint64_t>(seed));
    workload::compute(100 + random.below(500), random.next());
    sleep_microseconds(random.below(3000));
}

/// Makes a task with threads, and waits for the first of them only.
void churn(void* number) {
    workload::Random random(reinterpret_cast<std::uint64_t>(number));
    while (!enough.load(std::memory_order_relaxed)) {
        char name[32];
        format_to(name, sizeof(name), "mayfly-%lu",
                  tasks_made.fetch_add(1, std::memory_order_relaxed));
        auto task = task_create(name);
        Thread* first = nullptr;
        for (std::size_t index = 0; task.ok() && index < threads_per_task; index++) {
            auto thread =
                thread_create(*task.value(), "mayfly", live_shortly,
                              reinterpret_cast<void*>(random.next()), {.joinable = index == 0});
            if (!thread.ok()) {
                failures.fetch_add(1, std::memory_order_relaxed);
                break;
            }
            first = index == 0 ? thread.value() : first;
            thread_start(*thread.value());
        }
        if (!task.ok())
            failures.fetch_add(1, std::memory_order_relaxed);
        else
            task_release(*task.value());
        if (first != nullptr)
            thread_join(*first);
    }
}

void keep_busy(void* seed) {
    while (!enough.load(std::memory_order_relaxed))
        workload::compute(1000, reinterpret_cast<std::uint64_t>(seed));
}

class Churn {
  public:
    explicit Churn(Verdict& verdict) {
        enough.store(false, std::memory_order_relaxed);
        const auto cpus = static_cast<std::size_t>(std::popcount(machine::online_cpus()));
        for (std::size_t i = 0; i < threads_.size(); i++) {
            const bool busy = i >= threads_.size() / 2;
            if (busy && i - threads_.size() / 2 >= cpus)
                break;
            auto thread =
                thread_create(kernel_task(), busy ? "busy" : "churn", busy ? keep_busy : churn,
                              reinterpret_cast<void*>(i + 1), {.joinable = true});
            if (!thread.ok()) {
                verdict.fail("no thread");
                break;
            }
            threads_[count_++] = thread.value();
            thread_start(*thread.value());
        }
    }
    /// Ends when everything is gone that came.
    void end(Verdict& verdict, std::size_t tasks, std::size_t threads) {
        enough.store(true, std::memory_order_relaxed);
        for (std::size_t i = 0; i < count_; i++)
            thread_join(*threads_[i]);
        for (int patience = 3000; task_count() != tasks || thread_count() != threads; patience--) {
            if (patience == 0)
                return verdict.fail("%zu tasks and %zu threads are left, not %zu and %zu",
                                    task_count(), thread_count(), tasks, threads);
            sleep_milliseconds(10);
        }
        // The last one may be about to be freed.
        sleep_milliseconds(100);
    }

  private:
    std::array<Thread*, 8> threads_{};
    std::size_t count_ = 0;
};

void capture(Verdict& verdict, StackshotSeries& series) {
    if (const auto error = series.next(); error != stackshot::BSD_SUCCESS)
        verdict.fail("a capture failed: %s", stackshot::bsd_errno_name(error));
}

/// Pages in use after so many captures under load, but for stacks: of these there are as many as
/// there ever were threads at a time.
std::size_t pages_after(Verdict& verdict, StackshotSeries& series, std::uint64_t captures,
                        std::size_t tasks, std::size_t threads) {
    Churn load(verdict);
    for (std::uint64_t number = 1; number <= captures && !verdict.failed(); number++) {
        sleep_milliseconds(number % 7);
        capture(verdict, series);
    }
    load.end(verdict, tasks, threads);
    return page_allocator().total_pages() - page_allocator().free_pages() - kernel_stack_pages();
}

}  // namespace

void stress_test(Verdict& verdict) {
    const StackshotPlan plan = read_stackshot_plan(boot_arguments());
    if (plan.count < 10)
        return verdict.fail("stackshot.count=%lu is too few", plan.count);
    // A part of them first, for the heap to get the memory it keeps; the last one at the end, since
    // nobody listens any more after it.
    const std::uint64_t first_part = plan.count / 5;
    const std::uint64_t rest = plan.count - first_part - 1;
    // The thread that started this one is taken apart meanwhile.
    sleep_milliseconds(200);
    const std::size_t tasks = task_count();
    const std::size_t threads = thread_count();
    StackshotSeries series(plan);
    const std::size_t before = pages_after(verdict, series, first_part, tasks, threads);
    if (verdict.failed())
        return;
    const std::size_t after = pages_after(verdict, series, rest, tasks, threads);
    // What the heap keeps depends on how many threads there were at a time. A capture that loses
    // memory loses a page at least.
    if (after > before + rest / 2)
        verdict.fail("%zu pages are in use, %zu before", after, before);
    if (failures.load(std::memory_order_relaxed) != 0)
        verdict.fail("%lu tasks or threads could not be made",
                     failures.load(std::memory_order_relaxed));
    console::print("stress: %lu captures, %lu tasks came and went, %zu pages in use, %zu before\n",
                   plan.count, tasks_made.load(std::memory_order_relaxed), after, before);
    capture(verdict, series);
}

}  // namespace kernel::selftest
