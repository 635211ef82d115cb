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
constinit std::size_t number_of_tasks = 0;
constinit std::size_t number_of_threads = 0;
constinit std::uint64_t last_unique_pid = 0;
constinit std::int32_t last_pid = 0;

void set_name(Task& task, const char* name) {
    std::memcpy(task.name, name, std::min(std::strlen(name), Task::max_name));
}

bool pid_in_use(std::int32_t pid) {
    for (const Task* task = tasks.first(); task != nullptr; task = TaskList::next(*task))
        if (task->pid == pid)
            return true;
    return false;
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
    tasks.push_back(the_kernel_task);
    number_of_tasks = 1;
}

kcdata::Result<Task*> task_create(const char* name, std::uint64_t flags) {
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
    tasks.push_back(*task);
    ++number_of_tasks;
    return task;
}

void task_release(Task& task) {
    {
        SchedulerGuard guard;
        CHECK(task.references > 0);
        if (--task.references > 0)
            return;
        CHECK(task.threads.empty());
        tasks.remove(task);
        --number_of_tasks;
    }
    heap::destroy(&task);
}

void task_add_thread(SchedulerGuard&, Task& task, Thread& thread) {
    thread.task = &task;
    ++task.references;
    task.threads.push_back(thread);
    ++task.thread_count;
    ++number_of_threads;
}

void task_remove_thread(SchedulerGuard&, Task& task, Thread& thread) {
    task.threads.remove(thread);
    --task.thread_count;
    --number_of_threads;
    task.system_time_in_terminated_threads += thread.system_time;
}

const TaskList& task_list() {
    return tasks;
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
