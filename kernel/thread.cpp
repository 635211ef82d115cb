#include "kernel/thread.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernel/format_text.hpp"
#include "kernel/heap.hpp"
#include "kernel/ipc_port.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/sleep.hpp"
#include "kernel/task.hpp"
#include "kernel/turnstile.hpp"

namespace kernel {
namespace {

constinit std::uint64_t last_thread_id = 0;
constinit ThreadQueue terminated_threads;
constinit Turnstile terminate_daemon;

/// Ended threads are taken apart in batches, this often.
constexpr std::uint64_t terminate_interval_milliseconds = 20;

/// The outermost frame of every thread but the CPUs' first ones.
void thread_main(void* argument) {
    scheduler::begin_thread();
    const Thread& self = *static_cast<const Thread*>(argument);
    self.entry(self.argument);
    thread_exit();
}

/// False: the task is terminated.
[[nodiscard]] bool add_to_task(Task& task, Thread& thread) {
    SchedulerGuard guard;
    thread.thread_id = ++last_thread_id;
    return task_add_thread(guard, task, thread);
}

/// Frees a thread that has been switched away from for the last time.
void reap(Thread& thread) {
    Task& task = *thread.task;
    const KernelStack stack = thread.stack;
    Port* reply_port = nullptr;
    kcdata::io_stats_snapshot* io_statistics = nullptr;
    bool joined = false;
    bool last = false;
    {
        SchedulerGuard guard;
        last = task_remove_thread(guard, task, thread);
        thread.reaped = true;
        // A joiner may free the thread as soon as the lock is free.
        reply_port = thread.special_reply_port;
        io_statistics = std::exchange(thread.io_statistics, nullptr);
        joined = !thread.joinable;
    }
    // Not before: a stop walks the stacks of all threads that are listed.
    free_kernel_stack(stack);
    release_special_reply_port(reply_port);
    heap::destroy(io_statistics);
    if (joined)
        heap::destroy(&thread);
    if (last)
        task_destroy(task);
}

}  // namespace

kcdata::Result<Thread*> thread_create(Task& task, const char* name, ThreadEntry entry,
                                      void* argument, ThreadOptions options) {
    CHECK(options.priority >= MINPRI && options.priority <= MAXPRI);
    auto* const thread = heap::create<Thread>();
    if (thread == nullptr)
        return kcdata::KERN_RESOURCE_SHORTAGE;
    thread->stack = allocate_kernel_stack();
    if (!thread->stack.valid()) {
        heap::destroy(thread);
        return kcdata::KERN_RESOURCE_SHORTAGE;
    }
    std::memcpy(thread->name, name, std::min(std::strlen(name), Thread::max_name));
    thread->entry = entry;
    thread->argument = argument;
    thread->requested_policy = requested_policy(options.policy).value();
    thread->effective_policy = effective_policy(options.policy).value();
    thread->base_pri = thread->sched_pri =
        static_cast<std::int16_t>(base_priority(options.policy, options.priority));
    thread->joinable = options.joinable;
    platform::prepare_context(thread->context, thread->stack.high, thread_main, thread);

    if (!add_to_task(task, *thread)) {
        free_kernel_stack(thread->stack);
        heap::destroy(thread);
        return kcdata::KERN_FAILURE;
    }
    return thread;
}

kcdata::Result<Thread*> idle_thread_create(CpuIndex cpu, KernelStack stack) {
    auto* const thread = heap::create<Thread>();
    if (thread == nullptr)
        return kcdata::KERN_RESOURCE_SHORTAGE;
    format_to(thread->name, sizeof(thread->name), "idle #%u", cpu);
    thread->stack = stack;
    if (!add_to_task(kernel_task(), *thread))
        panic("kernel_task is terminated");
    return thread;
}

void idle_thread_discard(Thread& thread) {
    CHECK(thread.last_cpu == no_cpu);
    {
        SchedulerGuard guard;
        task_thread_ended(guard, *thread.task);
        CHECK(!task_remove_thread(guard, *thread.task, thread));  // of kernel_task
    }
    heap::destroy(&thread);
}

void start_kernel_thread(const char* name, ThreadEntry entry, void* argument) {
    auto thread = thread_create(kernel_task(), name, entry, argument, {.priority = BASEPRI_KERNEL});
    if (!thread.ok())
        panic("no memory for the thread \"%s\"", name);
    thread_start(*thread.value());
}

void thread_start(Thread& thread) {
    SchedulerGuard guard;
    scheduler::unblock(guard, thread, WaitResult::THREAD_AWAKENED);
}

void thread_set_base_priority(Thread& thread, int priority) {
    CHECK(priority >= MINPRI && priority <= MAXPRI);
    SchedulerGuard guard;
    thread.base_pri = static_cast<std::int16_t>(priority);
    Turnstile::update_priority(guard, &thread);
}

void thread_join(Thread& thread) {
    CHECK(machine::interrupts_enabled());
    bool reaped = false;
    {
        SchedulerGuard guard;
        CHECK(thread.joinable && thread.joiner == nullptr);
        if ((thread.state & SS_TH_TERMINATE2) == 0) {
            Turnstile joiner;
            thread.joiner = &joiner;
            joiner.set_inheritor(guard, &thread);
            const WaitResult result = joiner.wait(
                guard, {.event = &thread, .block_hint = kcdata::kThreadWaitSleepWithInheritor});
            CHECK(result == WaitResult::THREAD_AWAKENED);
        }
        thread.joinable = false;
        reaped = thread.reaped;
    }
    if (reaped)
        heap::destroy(&thread);
}

void thread_exit() {
    SchedulerGuard guard;
    Thread& self = current_thread();
    CHECK(self.lock_count == 0);
    Turnstile::renounce_all(guard, self);
    self.state = SS_TH_WAIT | SS_TH_UNINT | SS_TH_TERMINATE | SS_TH_TERMINATE2;
    task_thread_ended(guard, *self.task);
    terminated_threads.push_back(self);
    terminate_daemon.wake_one(guard);
    if (self.joiner != nullptr)
        self.joiner->wake_all(guard);
    scheduler::block(guard);
    panic("thread %llu goes on after its end", static_cast<unsigned long long>(self.thread_id));
}

void thread_terminate_daemon(void*) {
    for (;;) {
        {
            SchedulerGuard guard;
            if (terminated_threads.empty()) {
                const WaitResult result =
                    terminate_daemon.wait(guard, {.event = &terminated_threads});
                CHECK(result == WaitResult::THREAD_AWAKENED);
            }
        }
        sleep_milliseconds(terminate_interval_milliseconds);
        for (;;) {
            Thread* thread = nullptr;
            {
                SchedulerGuard guard;
                thread = terminated_threads.pop_front();
            }
            if (thread == nullptr)
                break;
            reap(*thread);
        }
    }
}

}  // namespace kernel
