#pragma once

#include <cstdint>

namespace kernel {

/// `nanoseconds` in absolute time units, rounded up.
std::uint64_t nanoseconds_to_absolute_time(std::uint64_t nanoseconds);
/// `milliseconds` in absolute time units, rounded up.
std::uint64_t milliseconds_to_absolute_time(std::uint64_t milliseconds);
/// `ticks` of absolute time in microseconds, rounded down.
std::uint64_t absolute_time_to_microseconds(std::uint64_t ticks);

}  // namespace kernel
