#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/arm64/cpu/secondary.hpp"
#include "platform/arm64/devicetree/board.hpp"

// What start_secondary() leaves for boot/entry.S and boot/entry.cpp, and where they begin.
namespace platform {

/// Where a secondary starts, at the exception level we were entered at, with its MMU off.
extern "C" const char secondary_entry[];

/// Marks an affinity, which may be 0, as set: bit 31 is RES1 in MPIDR_EL1 and no affinity.
constexpr std::uint64_t secondary_key(Mpidr mpidr) {
    return mpidr.value() | std::uint64_t{1} << 31;
}
/// secondary_key() of each CPU that was asked to start, by index, else 0. Read by the secondaries
/// before their MMU is on.
extern "C" std::uint64_t secondary_mpidrs[Board::max_cpus];

/// The stack of a secondary until its MMU is on. Never touched with caches on.
struct alignas(1024) EarlyStack {
    std::byte bytes[1024];
};
extern "C" EarlyStack secondary_early_stacks[Board::max_cpus];

/// Read with the MMU on.
extern "C" SecondaryStart secondary_starts[Board::max_cpus];

}  // namespace platform
