#pragma once

#include "kernel/machine.hpp"
#include "platform/arm64/devicetree/board.hpp"
#include "platform/arm64/gic/interrupt_controller.hpp"

/// What stands behind machine.hpp on the target: who is who, and the interrupts.
namespace kernel::machine {

/// SGIs by what they ask for.
inline constexpr platform::Intid reschedule_sgi = platform::Intid::sgi(0);
inline constexpr platform::Intid stop_sgi = platform::Intid::sgi(1);

/// The calling CPU is `cpu` from now on, and its exceptions come to our vectors. First thing on
/// every CPU, whose overflow stack is set.
void adopt_cpu(CpuIndex cpu);
/// Finds the board's interrupt controller and timer. Once, on the boot CPU; the board lives as long
/// as the system. Panics if there are none: nothing works without.
void initialize_interrupts(const platform::Board& board);
/// This CPU's interrupts: SGIs and the timer's. Interrupts off.
[[nodiscard]] platform::GicStatus initialize_cpu_interrupts();
/// The timer's interrupt.
platform::Intid timer_interrupt();

}  // namespace kernel::machine
