#pragma once

#include <cstdint>

#include "platform/arm64/devicetree/board.hpp"

namespace boot {

/// Prints what machine this is on the console UART.
void report_board(const platform::Board& board, std::uint64_t entry_el);

/// Prints why boot cannot go on. Empty strings are left out.
void report_failure(const char* what, const char* which, const char* where);

}  // namespace boot
