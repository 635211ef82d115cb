#include "kernel/task.hpp"

#include <algorithm>
#include <cstring>

#include "kernel/heap.hpp"
#include "kernel/scheduler.hpp"

namespace kernel {
namespace {

/// Process ids are given out in turn, 1 to this, and not twice at a time. XNU's PID_MAX.
constexpr std::int32_t pid_max = 99999;

constinit Task the_kernel_task;
constinit TaskList tasks;
constinit TaskList terminated_tasks;
constinit std::size_t number_of_tasks = 0;
constinit std::size_t number_of_threads = 0;
constinit std::uint64_t last_unique_pid = 0;
constinit std::int32_t last_pid = 0;

void set_name(Task& task, const char* name) {
    std::memcpy(task.name, name, std::min(std::strlen(name), Task::max_name));
}

bool has_pid(const TaskList& list, std::int32_t pid) {
    for (const Task* task = list.first(); task != nullptr; task = TaskList::next(*task))
        if (task->pid == pid)
            return true;
    return false;
}

bool pid_in_use(std::int32_t pid) {
    return has_pid(tasks, pid) || has_pid(terminated_tasks, pid);
}

void terminate(SchedulerGuard&, Task& task) {
    if (task.terminated != 0)
        return;
    tasks.remove(task);
    task.terminated = 1;
    terminated_tasks.push_back(task);
}

/// One hold less. True: it was the last one, and the task is in no list any more.
bool drop(SchedulerGuard&, Task& task) {
    CHECK(task.references > 0);
    if (--task.references > 0)
        return false;
    CHECK(task.threads.empty());
    (task.terminated != 0 ? terminated_tasks : tasks).remove(task);
    --number_of_tasks;
    return true;
}

}  // namespace

Task& kernel_task() {
    return the_kernel_task;
}

void initialize_kernel_task() {
    SchedulerGuard guard;
    CHECK(tasks.empty());
    set_name(the_kernel_task, "kernel_task");
    the_kernel_task.start_time = machine::absolute_time();
    the_kernel_task.references = 1;
    initialize_coalitions(guard);
    coalition_add_task(guard, kernel_coalition(), the_kernel_task);
    tasks.push_back(the_kernel_task);
    number_of_tasks = 1;
}

kcdata::Result<Task*> task_create(const char* name, std::uint64_t flags, Coalition* coalition) {
    auto* const task = heap::create<Task>();
    if (task == nullptr)
        return kcdata::KERN_RESOURCE_SHORTAGE;
    set_name(*task, name);
    task->flags = flags;
    task->start_time = machine::absolute_time();
    task->references = 1;

    SchedulerGuard guard;
    task->unique_pid = ++last_unique_pid;
    do
        last_pid = last_pid % pid_max + 1;
    while (pid_in_use(last_pid));
    task->pid = last_pid;
    coalition_add_task(guard, coalition != nullptr ? *coalition : default_coalition(), *task);
    tasks.push_back(*task);
    ++number_of_tasks;
    return task;
}

void task_release(Task& task) {
    bool last = false;
    {
        SchedulerGuard guard;
        CHECK(!task.released);
        task.released = true;
        if (task.live_thread_count == 0)
            terminate(guard, task);
        last = drop(guard, task);
    }
    if (last)
        task_destroy(task);
}

void task_destroy(Task& task) {
    coalition_release(*task.coalition);
    heap::destroy(task.io_statistics);
    heap::destroy(&task);
}

void task_terminate(Task& task) {
    CHECK(&task != &the_kernel_task);
    SchedulerGuard guard;
    terminate(guard, task);
}

bool task_add_thread(SchedulerGuard&, Task& task, Thread& thread) {
    if (task.terminated != 0)
        return false;
    thread.task = &task;
    ++task.references;
    task.threads.push_back(thread);
    task.peak_thread_count = std::max(task.peak_thread_count, ++task.thread_count);
    thread.thread_group_id = task.coalition->thread_group.id;
    ++task.live_thread_count;
    ++number_of_threads;
    return true;
}

void task_thread_ended(SchedulerGuard& guard, Task& task) {
    if (--task.live_thread_count == 0 && task.released)
        terminate(guard, task);
}

bool task_remove_thread(SchedulerGuard& guard, Task& task, Thread& thread) {
    task.threads.remove(thread);
    --task.thread_count;
    --number_of_threads;
    task.system_time_in_terminated_threads += thread.system_time;
    return drop(guard, task);
}

const TaskList& task_list() {
    return tasks;
}

const TaskList& terminated_task_list() {
    return terminated_tasks;
}

std::size_t task_count() {
    SchedulerGuard guard;
    return number_of_tasks;
}

std::size_t thread_count() {
    SchedulerGuard guard;
    return number_of_threads;
}

}  // namespace kernel
