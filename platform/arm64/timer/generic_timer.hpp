#pragma once

#include <cstdint>

#include "platform/arm64/devicetree/board.hpp"
#include "platform/arm64/types.hpp"

/// The EL1 virtual timer of the generic timer [DDI 0487 D12]: the one both entry levels leave us.
/// Boot sets CNTVOFF_EL2 to 0 where we entered at EL2, so all CPUs count alike.
namespace platform::timer {

/// CNTVCT_EL0, not before anything older in program order.
inline std::uint64_t ticks() {
    std::uint64_t value;
    // ISB: the counter may otherwise be read before older instructions.
    asm volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
}

/// Ticks per second, CNTFRQ_EL0.
inline std::uint64_t frequency() {
    std::uint64_t value;
    asm volatile("mrs %0, cntfrq_el0" : "=r"(value));
    return value;
}

/// The timer's interrupt; special if the board has none.
inline Intid interrupt(const Board& board) {
    return board.virtual_timer;
}

/// Asserts the interrupt, a level, once ticks() reaches `deadline` until set_deadline() names a
/// later one or stop() is called. This CPU's timer.
void set_deadline(std::uint64_t deadline);
void stop();

/// Makes the counter send this CPU an event about every `period` ticks (rounded down to a power of
/// two, 1 to 2^16 on any implementation), so that a WFE loop can watch a deadline.
void enable_event_stream(std::uint64_t period);

}  // namespace platform::timer
