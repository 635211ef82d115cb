#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/arm64/types.hpp"

// The kernel's virtual address space: the upper half of 48 bits, translated by TTBR1_EL1 with 4 KiB
// pages. The lower half is not mapped once a CPU has left the boot code.
namespace platform::mmu {

inline constexpr std::size_t page_size = 4096;

/// All RAM, at this address + its physical address: Normal, Write-Back, Inner Shareable, never
/// executable. The image's text and constants are read-only here too; `no-map` memory is absent.
inline constexpr std::uint64_t direct_map_base = 0xffff'0000'0000'0000;
inline constexpr std::uint64_t direct_map_end = 0xffff'8000'0000'0000;
/// For map_pages(): the kernel decides what lies where.
inline constexpr std::uint64_t vm_base = 0xffff'8000'0000'0000;
inline constexpr std::uint64_t vm_end = 0xffff'c000'0000'0000;
/// Device registers, see map_device().
inline constexpr std::uint64_t device_base = 0xffff'c000'0000'0000;
inline constexpr std::uint64_t device_end = 0xffff'e000'0000'0000;
/// Where the image is linked.
inline constexpr std::uint64_t image_base = 0xffff'ffff'8000'0000;

// A kernel stack is the upper half of a slot that is aligned to its own size; the lower half is not
// mapped. So one bit of SP tells a stack from the guard below it: exception entry tests it before
// it stores anything. Every stack exceptions can be taken on has this form.
inline constexpr std::size_t stack_size = 16 * 1024;
inline constexpr std::size_t stack_slot_size = 32 * 1024;
inline constexpr unsigned stack_bit = 14;
static_assert(stack_size == std::size_t{1} << stack_bit && stack_slot_size == 2 * stack_size);

/// Where `address` of RAM is in the direct map.
inline std::byte* to_direct_map(PhysicalAddress address) {
    return reinterpret_cast<std::byte*>(direct_map_base + address.value());
}
/// The physical address of a pointer into the direct map.
inline PhysicalAddress from_direct_map(const void* pointer) {
    return PhysicalAddress(reinterpret_cast<std::uint64_t>(pointer) - direct_map_base);
}

}  // namespace platform::mmu
