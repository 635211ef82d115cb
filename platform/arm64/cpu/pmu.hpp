#pragma once

#include <cstdint>

/// The performance monitors of this CPU [DDI 0487 D13].
namespace platform::pmu {

/// Whether this CPU has PMUv3.
bool available();

/// Starts the cycle counter, and event counter 0 with INST_RETIRED, from 0. False if not available
/// or the CPU has no event counter. Counts at EL1. Once more is nothing.
[[nodiscard]] bool start();

/// Whether start() has been called on this CPU.
bool started();

/// PMCCNTR_EL0 since start().
std::uint64_t cycles();
/// INST_RETIRED since start(), modulo 2^32. In QEMU exact with -icount and 0 without.
std::uint32_t instructions_retired();

}  // namespace platform::pmu
