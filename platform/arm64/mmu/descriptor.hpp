#pragma once

#include <cstdint>

#include "platform/arm64/cpu/registers.hpp"
#include "platform/arm64/types.hpp"

// VMSAv8-64 descriptors, stage 1, 4 KiB granule, 48-bit addresses [DDI 0487 D8.3].
namespace platform::mmu {

using Descriptor = std::uint64_t;

inline constexpr std::uint64_t entries_per_table = 512;

/// Bytes one entry of a table at `level` (0 to 3) translates.
constexpr std::uint64_t entry_size(unsigned level) {
    return std::uint64_t{1} << (39 - 9 * level);
}
/// Place of the entry for `address` in a table at `level`.
constexpr std::uint64_t entry_index(std::uint64_t address, unsigned level) {
    return (address >> (39 - 9 * level)) % entries_per_table;
}

namespace descriptor {
inline constexpr Descriptor valid = bit(0);
/// At levels 0 to 2 the next level's table, at level 3 a page; without it a block.
inline constexpr Descriptor table_or_page = bit(1);
constexpr Descriptor AttrIndx(std::uint64_t index) {
    return index << 2;
}
inline constexpr Descriptor AP_read_only = bit(7);  // AP[2]
inline constexpr Descriptor SH_inner = 0b11 << 8;
inline constexpr Descriptor AF = bit(10);
inline constexpr Descriptor PXN = bit(53);
inline constexpr Descriptor UXN = bit(54);

inline constexpr std::uint64_t address_mask = 0x0000'ffff'ffff'f000;
}  // namespace descriptor

/// What a mapping allows; everything in a leaf descriptor but type and address.
namespace attributes {
inline constexpr Descriptor normal = descriptor::AttrIndx(MAIR_EL1::normal_index) |
                                     descriptor::SH_inner | descriptor::AF | descriptor::UXN;
inline constexpr Descriptor text = normal | descriptor::AP_read_only;
inline constexpr Descriptor constants = normal | descriptor::AP_read_only | descriptor::PXN;
inline constexpr Descriptor data = normal | descriptor::PXN;
inline constexpr Descriptor device = descriptor::AttrIndx(MAIR_EL1::device_index) | descriptor::AF |
                                     descriptor::UXN | descriptor::PXN;
}  // namespace attributes

constexpr bool is_valid(Descriptor d) {
    return (d & descriptor::valid) != 0;
}
constexpr bool is_table(Descriptor d, unsigned level) {
    return is_valid(d) && level < 3 && (d & descriptor::table_or_page) != 0;
}
constexpr PhysicalAddress output_address(Descriptor d) {
    return PhysicalAddress(d & descriptor::address_mask);
}
constexpr Descriptor table_descriptor(PhysicalAddress table) {
    return table.value() | descriptor::table_or_page | descriptor::valid;
}
constexpr Descriptor leaf_descriptor(PhysicalAddress address, unsigned level,
                                     Descriptor attributes) {
    return address.value() | attributes | descriptor::valid |
           (level == 3 ? descriptor::table_or_page : 0);
}

}  // namespace platform::mmu
