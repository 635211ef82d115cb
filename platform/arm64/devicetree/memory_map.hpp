#pragma once

#include <cstdint>

#include "platform/arm64/devicetree/board.hpp"

namespace platform {

/// Calls `use(MemoryRange)` for each part of `ranges` that no hole touches, in whole 4 KiB pages
/// and ascending order within each range. A page that is partly a hole is left out.
template <typename Ranges, typename Holes, typename Use>
void for_each_difference(const Ranges& ranges, const Holes& holes, Use use) {
    constexpr std::uint64_t page = 4096;
    constexpr auto down = [](std::uint64_t value) { return value & ~(page - 1); };
    constexpr auto up = [](std::uint64_t value) { return (value + page - 1) & ~(page - 1); };

    for (const MemoryRange& range : ranges) {
        std::uint64_t cursor = up(range.base.value());
        const std::uint64_t end = down(range.end().value());
        while (cursor < end) {
            // The first hole that begins at or behind the cursor, or lies over it.
            std::uint64_t hole_begin = end, hole_end = end;
            for (const MemoryRange& hole : holes) {
                const std::uint64_t begin = down(hole.base.value());
                if (hole.size != 0 && up(hole.end().value()) > cursor && begin < hole_begin) {
                    hole_begin = begin;
                    hole_end = up(hole.end().value());
                }
            }
            if (hole_begin > cursor)
                use(MemoryRange{PhysicalAddress(cursor), hole_begin - cursor});
            cursor = hole_end > cursor ? hole_end : cursor;
        }
    }
}

}  // namespace platform
