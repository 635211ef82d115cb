#pragma once

#include <bit>
#include <cstdint>

#include "stackshot/system.hpp"

/// The narrow header through which locks, wait queues, the scheduler and the quiesce protocol see
/// the machine. Implemented for the target over platform/arm64, and by a fake in test/unit/kernel
/// where host threads are the CPUs, so that the same kernel code runs under TSan.
namespace kernel {

using stackshot::CpuIndex;
using stackshot::CpuMask;
using stackshot::max_cpus;
using stackshot::no_cpu;

/// The set of only `cpu`.
constexpr CpuMask bit_of(CpuIndex cpu) {
    return CpuMask{1} << cpu;
}

/// Calls `visit` for each CPU in `cpus`, ascending.
template <typename Visit>
void for_each_cpu(CpuMask cpus, Visit visit) {
    for (; cpus != 0; cpus &= cpus - 1)
        visit(static_cast<CpuIndex>(std::countr_zero(cpus)));
}

namespace machine {

/// The CPU this runs on. With interrupts on the answer may be stale at once.
CpuIndex current_cpu();
/// CPUs that are online and answer interrupts. In one total order with announce_online() and all
/// other sequentially consistent accesses.
CpuMask online_cpus();
/// Adds this CPU to online_cpus(). For Quiesce::admit().
void announce_online();

/// Whether IRQs are unmasked on this CPU.
bool interrupts_enabled();
/// Masks IRQs on this CPU; returns whether they were unmasked before.
bool interrupts_disable();
/// Unmasks IRQs if `enabled`; the value interrupts_disable() returned.
void interrupts_restore(bool enabled);

/// Waits for an event (WFE); may return early. Never the only thing a loop depends on. The event
/// stream of the generic timer (CNTKCTL_EL1.EVNTEN) bounds it, so that a loop around it can watch a
/// deadline when nobody sends an event.
void wait_for_event();
/// Wakes every CPU in wait_for_event() (DSB ISHST; SEV): stores before it are visible to them
/// first.
void send_event();
/// Idles until an interrupt is pending (WFI), with IRQs masked or not.
void wait_for_interrupt();
/// Stops this CPU for good: interrupts off, WFI forever. On the host it leaves the fake CPU by an
/// exception.
[[noreturn]] void halt();

/// Absolute time in timer ticks (CNTVCT_EL0), monotonic over all CPUs.
std::uint64_t absolute_time();
/// Ticks of absolute_time() per second (CNTFRQ_EL0).
std::uint64_t ticks_per_second();

/// Starts counting what this CPU does; false if it cannot. Once more is nothing.
bool start_counters();
/// What this CPU has done since then; instructions modulo 2^32.
stackshot::CpuCounters counters();

/// Raises this CPU's timer interrupt when absolute_time() reaches `deadline`, at once if it has
/// already, and until the next call; UINT64_MAX: not at all. Interrupts off.
void set_timer(std::uint64_t deadline);

/// Makes `cpu` look at its run queue soon (SGI).
void send_reschedule(CpuIndex cpu);
/// Makes every CPU in `cpus` enter the quiesce protocol (SGI).
void send_stop(CpuMask cpus);

}  // namespace machine
}  // namespace kernel
