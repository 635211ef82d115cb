#pragma once

#include <cstdarg>
#include <cstdint>

#include "kcdata/records.hpp"
#include "kcdata/result.hpp"
#include "kernel/kernel_stack.hpp"
#include "kernel/list.hpp"
#include "kernel/machine.hpp"
#include "kernel/thread_policy.hpp"
#include "platform/arm64/cpu/context_switch.hpp"

namespace kernel {

struct DispatchQueue;
struct Task;
class Port;
class Turnstile;

// Thread states; XNU's bits, of which kcdata has the table.
using kcdata::SS_TH_IDLE;
using kcdata::SS_TH_RUN;
using kcdata::SS_TH_SUSP;
using kcdata::SS_TH_TERMINATE;
using kcdata::SS_TH_TERMINATE2;
using kcdata::SS_TH_UNINT;
using kcdata::SS_TH_WAIT;

/// Priorities, 0 to 127, larger ones first. XNU's names.
inline constexpr int IDLEPRI = 0;  ///< idle threads, and only they
inline constexpr int MINPRI = 1;
inline constexpr int BASEPRI_DEFAULT = 31;
inline constexpr int BASEPRI_FOREGROUND = 47;
inline constexpr int BASEPRI_KERNEL = 81;
inline constexpr int MAXPRI = 127;

/// A thread runs this with the argument it was created with, and ends when it returns.
using ThreadEntry = void (*)(void* argument);

/// Why a wait ended. XNU's names.
enum class [[nodiscard]] WaitResult : std::uint8_t{THREAD_AWAKENED, THREAD_TIMED_OUT};

/// A deadline that never comes.
inline constexpr std::uint64_t no_deadline = UINT64_MAX;

/// What a thread is about to wait for.
struct WaitFor {
    const void* event = nullptr;  ///< the object, or what else names it
    /// What kind of object: kThreadWait..., for a capture.
    std::uint8_t block_hint = kcdata::kThreadWaitNone;
    bool uninterruptible = false;  ///< SS_TH_UNINT
};

/// A kernel thread. Times are in absolute time units. Everything that can change is guarded by the
/// scheduler lock, and may be read while the world is stopped.
struct Thread {
    static constexpr std::size_t max_name = 63;

    // A capture copies what stands from here to the stack pointer in `context`.

    // Fixed once the thread is in the thread list of its task.
    std::uint64_t thread_id = 0;
    char name[max_name + 1] = {};
    KernelStack stack{};  ///< not valid() for a CPU's first thread: that is the boot stack

    ListLink<Thread> task_link{};  ///< in Task::threads

    std::uint32_t state = SS_TH_WAIT | SS_TH_UNINT;
    /// The thread's own priority.
    std::int16_t base_pri = BASEPRI_DEFAULT;
    /// What it is scheduled at: the larger one of base_pri and promotion_pri.
    std::int16_t sched_pri = BASEPRI_DEFAULT;
    /// What it inherits from those who wait for it; 0 if nobody does.
    std::int16_t promotion_pri = 0;
    /// What kind of object it waits for: kThreadWait..., kThreadWaitNone when it does not wait.
    std::uint8_t block_hint = kcdata::kThreadWaitNone;
    /// CPU the thread is on, or ran on last; no_cpu when it never ran.
    CpuIndex last_cpu = no_cpu;
    /// CPU in whose deadline queue the thread is.
    CpuIndex deadline_cpu = no_cpu;

    /// Time on a CPU, up to the last switch away from it. All of it is system time.
    std::uint64_t system_time = 0;
    /// Time spent running or waiting for a CPU, up to the last time it blocked.
    std::uint64_t runnable_time = 0;
    std::uint64_t last_run_time = 0;            ///< when it was switched away from last
    std::uint64_t last_made_runnable_time = 0;  ///< when it was unblocked or preempted last
    std::uint64_t unblocked_time = 0;           ///< when it was unblocked last

    /// What the thread waits for: the address of the object, 0 when it does not wait.
    std::uint64_t wait_event = 0;
    /// Where it waits; null when it does not, or waits for time or the end of a thread.
    Turnstile* turnstile = nullptr;

    /// thread_requested_policy and thread_effective_policy (thread_policy.hpp).
    std::uint64_t requested_policy = 0;
    std::uint64_t effective_policy = 0;
    /// Of its task's coalition. Fixed as the thread id is.
    std::uint64_t thread_group_id = 0;
    /// What it has done, up to the last switch away from it, where the CPUs count that.
    stackshot::CpuCounters counters{};
    /// Whose work it does at the moment; null: of no queue.
    const DispatchQueue* dispatch_queue = nullptr;
    kcdata::io_stats_snapshot* io_statistics = nullptr;  ///< null before the first request

    /// Where the thread goes on, if it is not on a CPU.
    platform::SwitchContext context{};

    // Fixed as the thread id is.
    Task* task = nullptr;
    ThreadEntry entry = nullptr;
    void* argument = nullptr;

    /// The first of the turnstiles whose inheritor this is.
    Turnstile* inherited = nullptr;
    /// Where replies to its requests come to; null before the first one.
    Port* special_reply_port = nullptr;
    /// Mutexes and reader-writer locks it holds.
    std::uint32_t lock_count = 0;
    WaitResult wait_result = WaitResult::THREAD_AWAKENED;
    std::uint64_t deadline = no_deadline;

    /// The object is kept for a thread_join() to come, even when the thread is reaped.
    bool joinable = false;
    bool reaped = false;
    /// Where thread_join() waits; null: nobody does.
    Turnstile* joiner = nullptr;

    ListLink<Thread> queue_link{};  ///< in a run queue, a turnstile or the reaper's queue
    struct DeadlineLinks {
        Thread* child = nullptr;
        Thread* sibling = nullptr;
        Thread* previous = nullptr;
    } deadline_links{};  ///< in a deadline queue
};

using ThreadList = List<Thread, &Thread::task_link>;
using ThreadQueue = List<Thread, &Thread::queue_link>;

/// How thread_create() makes a thread.
struct ThreadOptions {
    int priority = BASEPRI_DEFAULT;  ///< unless the policy's class has another one
    ThreadPolicy policy{};
    /// thread_join() will be called for it. Otherwise the pointer is good only as long as the
    /// caller knows that the thread has not ended.
    bool joinable = false;
};

/// A new thread of `task`, which waits (SS_TH_WAIT | SS_TH_UNINT) until thread_start(). The name is
/// cut to 63 characters. KERN_RESOURCE_SHORTAGE: no memory. KERN_FAILURE: the task is terminated.
/// Thread context.
kcdata::Result<Thread*> thread_create(Task& task, const char* name, ThreadEntry entry,
                                      void* argument, ThreadOptions options = {});
/// Starts a thread of kernel_task, of BASEPRI_KERNEL, that serves the whole system. Panics if there
/// is no memory. Thread context, or boot's.
void start_kernel_thread(const char* name, ThreadEntry entry, void* argument);
/// A thread of kernel_task that is to be the idle thread of `cpu`, on `stack` (not valid(): the
/// stack boot began on). KERN_RESOURCE_SHORTAGE: no memory.
kcdata::Result<Thread*> idle_thread_create(CpuIndex cpu, KernelStack stack);
/// Takes back a thread that was never started and never will be. Its stack is the caller's.
void idle_thread_discard(Thread& thread);
/// Makes a thread that was never started runnable. Any context but a stop.
void thread_start(Thread& thread);
/// Sets the priority (MINPRI to MAXPRI) a thread has of its own; it may run at a higher one that it
/// inherits. Any context but a stop.
void thread_set_base_priority(Thread& thread, int priority);
/// Waits until a joinable thread has ended, and gives it up; the thread inherits the caller's
/// priority meanwhile. Once for each thread, thread context.
void thread_join(Thread& thread);
/// Ends the calling thread, which holds no lock.
[[noreturn]] void thread_exit();

/// The thread that runs this. Any context; in an interrupt the one that was interrupted.
Thread& current_thread();

/// What the thread of kernel_task that takes ended threads apart runs.
void thread_terminate_daemon(void*);

}  // namespace kernel
