#pragma once

#include <algorithm>

#include "platform/arm64/devicetree/board.hpp"

namespace kernel {

/// Calls visit(MemoryRange) for each part of the board's memory, ascending, that no reserved range
/// covers. Reserved ranges may overlap, be empty, in any order, and reach beyond the memory.
template <typename Visit>
void for_each_free_range(const platform::Board& board, Visit visit) {
    for (const platform::MemoryRange& memory : board.memory) {
        platform::PhysicalAddress at = memory.base;
        while (at < memory.end()) {
            // The free part from `at` on ends where the next reserved range begins; if one covers
            // `at`, there is no such part, and the walk goes on behind that range.
            platform::PhysicalAddress end = memory.end();
            platform::PhysicalAddress next = at;
            for (const platform::ReservedRange& reserved : board.reserved) {
                if (reserved.range.size == 0)
                    continue;
                if (reserved.range.base <= at && at < reserved.range.end())
                    next = std::max(next, reserved.range.end());
                else if (reserved.range.base > at)
                    end = std::min(end, reserved.range.base);
            }
            if (next != at) {
                at = next;
                continue;
            }
            visit(platform::MemoryRange{at, end - at});
            at = end;
        }
    }
}

}  // namespace kernel
