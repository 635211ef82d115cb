#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/arm64/devicetree/board.hpp"
#include "platform/arm64/mmu/descriptor.hpp"
#include "platform/arm64/mmu/status.hpp"

// The translation tables boot begins with: a pool inside the image, filled first by
// boot/early_tables.cpp with the MMU off and then by mmu.cpp.
namespace platform::mmu {

struct alignas(4096) Table {
    Descriptor entries[entries_per_table];
};

inline constexpr std::size_t boot_table_count = 64;
/// Not cleared with BSS: in use by then.
extern "C" Table boot_tables[boot_table_count];
extern "C" std::uint64_t boot_tables_used;

/// Of boot_tables: the root for TTBR0_EL1, which maps the code that turns the MMU on where it is;
/// used by each CPU that starts.
inline constexpr std::size_t identity_root = 0;
/// Of boot_tables: the root for TTBR1_EL1.
inline constexpr std::size_t kernel_root = 1;

/// Stops this CPU from using the identity map.
void leave_identity_map();
/// Maps the device tree at `address` in the direct map, by what its header says. Returns its size,
/// 0 if there is no device tree there or no room to map it.
std::size_t map_device_tree(PhysicalAddress address);
/// Maps the board's RAM in the direct map.
[[nodiscard]] Status map_memory(const Board& board);

}  // namespace platform::mmu
