#pragma once

#include <cstdint>

namespace kernel {

/// Blocks the calling thread until absolute time `deadline`. Thread context, interrupts on.
void sleep_until(std::uint64_t deadline);
void sleep_microseconds(std::uint64_t microseconds);
void sleep_milliseconds(std::uint64_t milliseconds);

/// `nanoseconds` in absolute time units, rounded up.
std::uint64_t nanoseconds_to_absolute_time(std::uint64_t nanoseconds);

}  // namespace kernel
