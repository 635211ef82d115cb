#include "kernel/scheduler.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "kernel/absolute_time.hpp"
#include "kernel/cpu.hpp"
#include "kernel/run_queue.hpp"
#include "kernel/task.hpp"
#include "kernel/turnstile.hpp"

namespace kernel {
namespace {

constinit SpinLock scheduler_lock;
constinit RunQueue run_queue;
/// CPUs that take part in scheduling.
constinit CpuMask scheduled_cpus = 0;

void program_timer(Cpu& cpu) {
    std::uint64_t deadline = cpu.quantum_end;
    if (const Thread* first = cpu.deadlines.first(); first != nullptr)
        deadline = std::min(deadline, first->deadline);
    if (deadline != cpu.timer_deadline) {
        cpu.timer_deadline = deadline;
        machine::set_timer(deadline);
    }
}

void start_quantum(Cpu& cpu, std::uint64_t now) {
    cpu.quantum_expired = false;
    cpu.quantum_end = cpu.current == cpu.idle
                          ? no_deadline
                          : now + milliseconds_to_absolute_time(scheduler::quantum_milliseconds);
}

/// Tells the thread on the CPU, and its task, what they have done since the last time.
void count_work(Cpu& cpu) {
    if (!cpu.counts)
        return;
    const stackshot::CpuCounters now = machine::counters();
    const std::uint64_t cycles = now.cycles - cpu.counters.cycles;
    const auto instructions =
        static_cast<std::uint32_t>(now.instructions - cpu.counters.instructions);
    cpu.counters = now;
    const auto add = [&](stackshot::CpuCounters& counters) {
        counters.cycles += cycles;
        counters.instructions += instructions;
    };
    Task& task = *cpu.current->task;
    add(cpu.current->counters);
    add(task.counters);
    if (cpu.is_p_core)
        add(task.counters_on_p_cores);
}

/// Returns when the calling thread is switched to again: on any CPU, which holds the lock then.
void switch_to(Cpu& cpu, Thread& next) {
    Thread& previous = *cpu.current;
    const std::uint64_t now = machine::absolute_time();
    previous.system_time += now - cpu.dispatch_time;
    previous.last_run_time = now;
    if ((previous.state & SS_TH_RUN) != 0)
        previous.last_made_runnable_time = now;
    else
        previous.runnable_time += now - previous.unblocked_time;

    count_work(cpu);
    cpu.current = &next;
    cpu.task = next.task;
    cpu.claimed_priority = next.sched_pri;
    cpu.reschedule.store(false, std::memory_order_relaxed);
    cpu.dispatch_time = now;
    next.last_cpu = machine::current_cpu();
    start_quantum(cpu, now);
    program_timer(cpu);
    ++cpu.switches;
    if (&next != &previous)
        platform::switch_context(previous.context, next.context);
}

/// The CPU that should look for `thread` now: the one at the lowest priority, if it is lower than
/// the thread's; the thread's last one if there are several. no_cpu: it has to wait its turn.
CpuIndex choose_cpu(const Thread& thread) {
    CpuIndex best = no_cpu;
    int lowest = thread.sched_pri;
    const auto consider = [&](CpuIndex cpu) {
        if (const int priority = cpu_at(cpu).claimed_priority; priority < lowest) {
            best = cpu;
            lowest = priority;
        }
    };
    if (thread.last_cpu != no_cpu)
        consider(thread.last_cpu);
    for_each_cpu(scheduled_cpus, consider);
    return best;
}

/// Makes `cpu` look for a thread of `priority`.
void call(CpuIndex index, int priority) {
    Cpu& cpu = cpu_at(index);
    cpu.claimed_priority = priority;
    // Already set: an interrupt is on its way, or under way on this very CPU.
    if (!cpu.reschedule.exchange(true, std::memory_order_relaxed))
        machine::send_reschedule(index);
}

/// Makes a CPU that runs less look for `thread`, which is in the run queue.
void call_cpu_for(const Thread& thread) {
    const CpuIndex chosen = choose_cpu(thread);
    if (chosen != no_cpu)
        call(chosen, thread.sched_pri);
}

}  // namespace

SchedulerGuard::SchedulerGuard() : guard_(scheduler_lock) {}

Thread& current_thread() {
    InterruptsOff interrupts_off;
    return *this_cpu().current;
}

namespace scheduler {

void adopt_idle_thread(SchedulerGuard&, Thread& idle) {
    Cpu& cpu = this_cpu();
    CHECK(cpu.current == nullptr);
    idle.state = SS_TH_RUN | SS_TH_IDLE;
    idle.base_pri = idle.sched_pri = IDLEPRI;
    idle.last_cpu = machine::current_cpu();
    cpu.current = cpu.idle = &idle;
    cpu.task = idle.task;
    cpu.counts = machine::start_counters();
    if (cpu.counts)
        cpu.counters = machine::counters();
    cpu.dispatch_time = idle.unblocked_time = idle.last_made_runnable_time =
        machine::absolute_time();
    // Threads may have been waiting for a CPU to come.
    cpu.reschedule.store(true, std::memory_order_relaxed);
    scheduled_cpus |= bit_of(idle.last_cpu);
}

void idle() {
    for (;;) {
        machine::interrupts_disable();
        preempt();
        machine::wait_for_interrupt();
        machine::interrupts_restore(true);
    }
}

void begin_thread() {
    // The thread that switched to this one took the lock.
    scheduler_lock.release();
    machine::interrupts_restore(true);
}

void block(SchedulerGuard&) {
    Cpu& cpu = this_cpu();
    CHECK(cpu.current != cpu.idle);
    CHECK((cpu.current->state & SS_TH_RUN) == 0);
    Thread* const next = run_queue.pop();
    switch_to(cpu, next != nullptr ? *next : *cpu.idle);
}

void assert_wait(SchedulerGuard&, const WaitFor& what, std::uint64_t deadline) {
    Cpu& cpu = this_cpu();
    Thread& self = *cpu.current;
    self.wait_event = std::bit_cast<std::uint64_t>(what.event);
    self.block_hint = what.block_hint;
    self.state = (self.state & ~SS_TH_RUN) | SS_TH_WAIT | (what.uninterruptible ? SS_TH_UNINT : 0u);
    if (deadline != no_deadline) {
        self.deadline = deadline;
        self.deadline_cpu = machine::current_cpu();
        cpu.deadlines.insert(self);
    }
}

void unblock(SchedulerGuard&, Thread& thread, WaitResult result) {
    CHECK((thread.state & (SS_TH_WAIT | SS_TH_RUN | SS_TH_TERMINATE)) == SS_TH_WAIT);
    if (thread.deadline != no_deadline) {
        cpu_at(thread.deadline_cpu).deadlines.remove(thread);
        thread.deadline = no_deadline;
    }
    thread.wait_event = 0;
    thread.block_hint = kcdata::kThreadWaitNone;
    // Release: as where it is set, in Turnstile::wait().
    std::atomic_ref(thread.turnstile).store(nullptr, std::memory_order_release);
    thread.wait_result = result;
    thread.state = (thread.state & ~(SS_TH_WAIT | SS_TH_UNINT)) | SS_TH_RUN;
    thread.unblocked_time = thread.last_made_runnable_time = machine::absolute_time();
    run_queue.push_back(thread);
    call_cpu_for(thread);
}

void set_sched_pri(SchedulerGuard&, Thread& thread, std::int16_t priority) {
    if ((thread.state & SS_TH_RUN) == 0) {
        thread.sched_pri = priority;
    } else if (thread.last_cpu != no_cpu && cpu_at(thread.last_cpu).current == &thread) {
        thread.sched_pri = priority;
        Cpu& cpu = cpu_at(thread.last_cpu);
        if (run_queue.highest_priority() > priority)
            call(thread.last_cpu, run_queue.highest_priority());
        else
            cpu.claimed_priority = priority;
    } else {
        run_queue.remove(thread);
        thread.sched_pri = priority;
        run_queue.push_back(thread);
        call_cpu_for(thread);
    }
}

void yield() {
    SchedulerGuard guard;
    Cpu& cpu = this_cpu();
    Thread& self = *cpu.current;
    CHECK(&self != cpu.idle);
    if (run_queue.highest_priority() < self.sched_pri)
        return;
    run_queue.push_back(self);
    switch_to(cpu, *run_queue.pop());
}

void timer_interrupt() {
    SchedulerGuard guard;
    Cpu& cpu = this_cpu();
    // Looked at on the way out: what is unblocked here for this CPU needs no interrupt.
    cpu.reschedule.store(true, std::memory_order_relaxed);
    // Before so many instructions are retired that their number would not be known.
    count_work(cpu);
    const std::uint64_t now = machine::absolute_time();
    for (Thread* thread = cpu.deadlines.first(); thread != nullptr && thread->deadline <= now;
         thread = cpu.deadlines.first()) {
        if (thread->turnstile != nullptr)
            thread->turnstile->expire(guard, *thread);
        else
            unblock(guard, *thread, WaitResult::THREAD_TIMED_OUT);
    }
    if (cpu.quantum_end <= now) {
        start_quantum(cpu, now);
        cpu.quantum_expired = true;
    }
    cpu.timer_deadline = 0;  // it has fired: program it whatever the next deadline is
    program_timer(cpu);
}

void preempt() {
    Cpu& cpu = this_cpu();
    if (!cpu.reschedule.load(std::memory_order_relaxed))
        return;
    SchedulerGuard guard;
    Thread& current = *cpu.current;
    const int highest = run_queue.highest_priority();
    const bool expired = std::exchange(cpu.quantum_expired, false);
    if (highest > current.sched_pri || (expired && highest == current.sched_pri)) {
        if (&current != cpu.idle)
            expired ? run_queue.push_back(current) : run_queue.push_front(current);
        switch_to(cpu, *run_queue.pop());
    } else {
        cpu.reschedule.store(false, std::memory_order_relaxed);
        cpu.claimed_priority = current.sched_pri;
    }
}

}  // namespace scheduler
}  // namespace kernel
