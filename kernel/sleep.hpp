#pragma once

#include <cstdint>

namespace kernel {

/// Blocks the calling thread until absolute time `deadline`. Thread context, interrupts on.
void sleep_until(std::uint64_t deadline);
void sleep_microseconds(std::uint64_t microseconds);
void sleep_milliseconds(std::uint64_t milliseconds);

}  // namespace kernel
