#pragma once

#include "platform/arm64/types.hpp"

/// The `spin-table` enable method of the device tree: a CPU waits, with its MMU off, for an address
/// to appear in memory [Devicetree Specification 3.8.1].
namespace platform::spin_table {

/// Sends the CPU that watches `release_address` to `entry`; false if that memory cannot be mapped.
[[nodiscard]] bool release(PhysicalAddress release_address, PhysicalAddress entry);

}  // namespace platform::spin_table
