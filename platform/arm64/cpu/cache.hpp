#pragma once

#include <cstddef>
#include <cstdint>

// Data cache maintenance by address to the Point of Coherency, for data that is also read or
// written with the caches off. Inline, so that code that runs before the MMU is on has its own.
namespace platform::cpu {

namespace detail {
enum class Maintenance { clean, clean_and_invalidate, invalidate };

template <Maintenance operation>
inline void for_each_line(std::uint64_t address, std::size_t size) {
    std::uint64_t ctr;
    asm volatile("mrs %0, ctr_el0" : "=r"(ctr));
    // CTR_EL0.DminLine: log2 of the words in the smallest line of all data caches.
    const std::uint64_t line = std::uint64_t{4} << ((ctr >> 16) & 0xf);
    for (std::uint64_t p = address & ~(line - 1); p < address + size; p += line) {
        if constexpr (operation == Maintenance::clean)
            asm volatile("dc cvac, %0" ::"r"(p) : "memory");
        else if constexpr (operation == Maintenance::clean_and_invalidate)
            asm volatile("dc civac, %0" ::"r"(p) : "memory");
        else
            asm volatile("dc ivac, %0" ::"r"(p) : "memory");
    }
    asm volatile("dsb sy" ::: "memory");
}
}  // namespace detail

/// What this or any coherent CPU wrote is in memory on return.
inline void clean_to_poc(std::uint64_t address, std::size_t size) {
    detail::for_each_line<detail::Maintenance::clean>(address, size);
}
/// The same, and no data cache holds it any more.
inline void clean_and_invalidate_to_poc(std::uint64_t address, std::size_t size) {
    detail::for_each_line<detail::Maintenance::clean_and_invalidate>(address, size);
}
/// No data cache holds it any more; what was written with caches on may be lost. Whole lines.
inline void invalidate_to_poc(std::uint64_t address, std::size_t size) {
    detail::for_each_line<detail::Maintenance::invalidate>(address, size);
}

}  // namespace platform::cpu
