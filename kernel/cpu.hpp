#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "kernel/deadline_queue.hpp"
#include "kernel/machine.hpp"
#include "kernel/thread.hpp"

namespace kernel {

/// What the kernel keeps for each CPU. The scheduler lock guards it, and it may be read while the
/// world is stopped; `current` is also read by its own CPU with interrupts off.
struct alignas(64) Cpu {
    /// Its place in the array, set before anything else.
    CpuIndex index = no_cpu;
    /// The thread on the CPU; null while the CPU does not take part in scheduling.
    Thread* current = nullptr;
    /// The thread it runs when there is nothing to run.
    Thread* idle = nullptr;
    /// The priority it runs at, or has been told to look for a thread of.
    int claimed_priority = IDLEPRI;
    /// Look at the run queue before going back from an interrupt. Set under the lock; tested by its
    /// own CPU without.
    std::atomic<bool> reschedule{false};
    /// `current` has had its share.
    bool quantum_expired = false;
    /// When `current` was switched to.
    std::uint64_t dispatch_time = 0;
    /// When `current` will have had its share.
    std::uint64_t quantum_end = no_deadline;
    /// What the CPU's timer is set to.
    std::uint64_t timer_deadline = no_deadline;
    /// The threads that went to sleep on this CPU, which wakes them.
    DeadlineQueue deadlines{};
    std::uint64_t switches = 0;
    /// Whether it counts what it does; what machine::counters() said when `current` was last told
    /// of it; and to which task that is told.
    bool counts = false;
    bool is_p_core = false;
    stackshot::CpuCounters counters{};
    const Task* task = nullptr;
};

/// All of them, by index. tools/gdb/kernel.py finds them by name.
extern std::array<Cpu, max_cpus> cpus;
/// The CPU `cpu`, less than max_cpus.
Cpu& cpu_at(CpuIndex cpu);
/// The CPU this runs on. Interrupts off.
Cpu& this_cpu();

}  // namespace kernel
