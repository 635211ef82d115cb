#pragma once

#include <cstdint>

#include "platform/arm64/devicetree/board.hpp"
#include "platform/arm64/types.hpp"

/// The firmware's power interface [DEN 0022].
namespace platform::psci {

/// Return codes [DEN 0022 5.2.2].
enum class Status : std::int32_t {
    SUCCESS = 0,
    NOT_SUPPORTED = -1,
    INVALID_PARAMETERS = -2,
    DENIED = -3,
    ALREADY_ON = -4,
    ON_PENDING = -5,
    INTERNAL_FAILURE = -6,
    NOT_PRESENT = -7,
    DISABLED = -8,
    INVALID_ADDRESS = -9,
};

/// The code's name in the specification; "unknown" for any other value.
const char* name(Status status);

/// What AFFINITY_INFO answers for one CPU; negative values are Status codes.
enum class AffinityState : std::int32_t { ON = 0, OFF = 1, ON_PENDING = 2 };
const char* name(AffinityState state);

/// Names the conduit all later calls use. Without one they answer NOT_SUPPORTED.
void initialize(Conduit conduit);

/// PSCI_VERSION: major in bits 31-16, minor in 15-0; negative: a Status.
std::int32_t version();
/// Starts a CPU at `entry` (MMU off, our exception level) with `context` in x0.
[[nodiscard]] Status cpu_on(Mpidr target, PhysicalAddress entry, std::uint64_t context);
/// Turns the calling CPU off. Returns only on an error. Interrupts off.
[[nodiscard]] Status cpu_off();
/// Whether one CPU is on.
AffinityState affinity_info(Mpidr target);
/// Turns the machine off. Returns only on an error.
[[nodiscard]] Status system_off();
/// Resets the machine. Returns only on an error.
[[nodiscard]] Status system_reset();

}  // namespace platform::psci
