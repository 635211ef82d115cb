#pragma once

#include "platform/arm64/devicetree/board.hpp"

namespace kernel {

/// Starts every CPU of the board but the boot CPU, and says of each on the console that it is
/// online, or why not. Waits for each with a bound. Once, thread context, while no other thread
/// makes threads: both change the translation tables.
void start_secondaries(const platform::Board& board);

}  // namespace kernel
