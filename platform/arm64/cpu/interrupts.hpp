#pragma once

#include <cstdint>

namespace platform::cpu {

/// PSTATE.I as DAIF shows it.
inline constexpr std::uint64_t daif_i = 1u << 7;

/// Whether IRQs are unmasked on this CPU.
inline bool interrupts_enabled() {
    std::uint64_t daif;
    asm volatile("mrs %0, daif" : "=r"(daif));
    return (daif & daif_i) == 0;
}

/// Masks IRQs; returns whether they were unmasked. Memory accesses do not move over it.
inline bool interrupts_disable() {
    const bool enabled = interrupts_enabled();
    asm volatile("msr daifset, #2" ::: "memory");
    return enabled;
}

/// Unmasks IRQs.
inline void interrupts_enable() {
    asm volatile("msr daifclr, #2" ::: "memory");
}

/// Unmasks SErrors, for good: only exception entry runs with them masked.
inline void serrors_enable() {
    asm volatile("msr daifclr, #4" ::: "memory");
}

/// Undoes interrupts_disable(), whose value is `enabled`.
inline void interrupts_restore(bool enabled) {
    if (enabled)
        interrupts_enable();
}

}  // namespace platform::cpu
