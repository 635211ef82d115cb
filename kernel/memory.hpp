#pragma once

#include "platform/arm64/devicetree/board.hpp"

namespace kernel {

/// Gives the board's free RAM to the page allocator and the page allocator's pages to the MMU for
/// its tables. Once, on the boot CPU, before anything allocates. Panics if there is no RAM to begin
/// with.
void initialize_memory(const platform::Board& board);

}  // namespace kernel
