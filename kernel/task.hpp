#pragma once

#include <cstddef>
#include <cstdint>

#include "kcdata/result.hpp"
#include "kernel/list.hpp"
#include "kernel/thread.hpp"
#include "stackshot/credential.hpp"

namespace kernel {

class SchedulerGuard;
class VmMap;

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

    ThreadList threads{};
    std::uint32_t thread_count = 0;
    /// System time of the threads that are gone.
    std::uint64_t system_time_in_terminated_threads = 0;
    /// One for the creator until task_release(), one for each thread.
    std::uint32_t references = 0;

    ListLink<Task> link{};  ///< in the task list
};

using TaskList = List<Task, &Task::link>;

/// The task the kernel's own threads belong to: pid 0, first in the task list, never gone.
Task& kernel_task();
/// Puts kernel_task into the task list. Once, before anything else here.
void initialize_kernel_task();

/// A new task without threads. It is kept until task_release() and for as long as it has threads.
/// The name is cut to 31 characters; `flags` are task_snapshot_flags. KERN_RESOURCE_SHORTAGE: no
/// memory. Thread context.
kcdata::Result<Task*> task_create(const char* name, std::uint64_t flags = 0);
/// Gives up the hold task_create() gave: the pointer is not to be used any more.
void task_release(Task& task);

/// Puts `thread` into `task`, which it holds from now on.
void task_add_thread(SchedulerGuard&, Task& task, Thread& thread);
/// Takes an ended thread out. Its hold is still to be given up by task_release().
void task_remove_thread(SchedulerGuard&, Task& task, Thread& thread);

/// All tasks, for a reader in a stop. Otherwise the scheduler lock is to be held.
const TaskList& task_list();
/// How many tasks and threads there are. They may change at once.
std::size_t task_count();
std::size_t thread_count();

}  // namespace kernel
