#pragma once

#include <cstddef>
#include <cstdint>

#include "kcdata/result.hpp"
#include "kernel/coalition.hpp"
#include "kernel/list.hpp"
#include "kernel/thread.hpp"
#include "stackshot/credential.hpp"

namespace kernel {

class SchedulerGuard;
class VmMap;

/// A request of an importance donor that is not answered yet: whom it makes important. On the
/// requester's stack.
struct ImportanceDonation {
    std::int32_t pid = 0;
    ListLink<ImportanceDonation> link{};
};
using DonationList = List<ImportanceDonation, &ImportanceDonation::link>;

/// A task: what threads belong to. Times are in absolute time units. Everything that can change is
/// guarded by the scheduler lock, and may be read while the world is stopped.
struct Task {
    static constexpr std::size_t max_name = 31;
    static constexpr std::uint32_t nobody = 99;

    // Fixed once the task is in the task list.
    std::int32_t pid = 0;
    std::uint64_t unique_pid = 0;
    char name[max_name + 1] = {};
    std::uint64_t flags = 0;  ///< task_snapshot_flags
    std::uint64_t start_time = 0;
    /// Set by the task's creator before any of its threads makes a system call; by default nobody's
    /// in particular.
    stackshot::Credential credential{.uid = nobody};
    VmMap* map = nullptr;  ///< the creator's; nullptr: no system call takes an address

    Coalition* coalition = nullptr;
    std::uint64_t coalition_id = 0;

    ThreadList threads{};
    std::uint32_t thread_count = 0;
    std::uint32_t peak_thread_count = 0;  ///< the most there ever were at a time
    /// Threads that have not ended; the others are still to be taken apart.
    std::uint32_t live_thread_count = 0;
    /// In teardown: among the terminated tasks, where it stays for as long as anything of it is
    /// left. A number, as a capture reads what may have been overwritten.
    std::uint32_t terminated = 0;
    bool released = false;  ///< by its creator
    /// System time of the threads that are gone.
    std::uint64_t system_time_in_terminated_threads = 0;
    /// Of all its threads, those that are gone included, up to the last switch away from each.
    stackshot::CpuCounters counters{}, counters_on_p_cores{};
    kcdata::io_stats_snapshot* io_statistics = nullptr;  ///< null before the first request
    /// Requests of its threads that are not answered, if it donates importance (kTaskIsImpDonor).
    DonationList donations{};
    /// One for the creator until task_release(), one for each thread.
    std::uint32_t references = 0;

    ListLink<Task> link{};  ///< in the task list, or in that of the terminated tasks
};

using TaskList = List<Task, &Task::link>;

/// The task the kernel's own threads belong to: pid 0, first in the task list, never gone.
Task& kernel_task();
/// Puts kernel_task into the task list. Once, before anything else here.
void initialize_kernel_task();

/// A new task without threads. It is kept until task_release() and for as long as it has threads.
/// It terminates when it is released and its last thread has ended, or by task_terminate(). The
/// name is cut to 31 characters; `flags` are task_snapshot_flags. It is of `coalition`; nullptr:
/// of default_coalition(). KERN_RESOURCE_SHORTAGE: no memory. Thread context.
kcdata::Result<Task*> task_create(const char* name, std::uint64_t flags = 0,
                                  Coalition* coalition = nullptr);
/// Gives up the hold task_create() gave: the pointer is not to be used any more.
void task_release(Task& task);
/// Terminates a task that is not kernel_task: it gets no more threads. Those it has go on until
/// they end by themselves. Once or more.
void task_terminate(Task& task);

/// Puts `thread` into `task`, which it holds from now on. False: the task is terminated.
[[nodiscard]] bool task_add_thread(SchedulerGuard&, Task& task, Thread& thread);
/// One thread of `task` will not run any more.
void task_thread_ended(SchedulerGuard&, Task& task);
/// Takes an ended thread out, and gives up its hold. True: it was the last one; the task is in no
/// list any more, and task_destroy() is to follow.
[[nodiscard]] bool task_remove_thread(SchedulerGuard&, Task& task, Thread& thread);
void task_destroy(Task& task);

/// All tasks but the terminated ones, for a reader in a stop. Otherwise the scheduler lock is to be
/// held.
const TaskList& task_list();
/// The terminated ones.
const TaskList& terminated_task_list();
/// How many tasks and threads there are, terminated ones included. They may change at once.
std::size_t task_count();
std::size_t thread_count();

}  // namespace kernel
