#include "kernel/absolute_time.hpp"

#include "kernel/machine.hpp"

namespace kernel {
namespace {

/// value * to / from, up if `round` is from - 1, with whole units apart: the product of all of it
/// may not fit.
std::uint64_t convert(std::uint64_t value, std::uint64_t from, std::uint64_t to,
                      std::uint64_t round) {
    return value / from * to + (value % from * to + round) / from;
}

}  // namespace

std::uint64_t nanoseconds_to_absolute_time(std::uint64_t nanoseconds) {
    constexpr std::uint64_t second = 1'000'000'000;
    return convert(nanoseconds, second, machine::ticks_per_second(), second - 1);
}

std::uint64_t milliseconds_to_absolute_time(std::uint64_t milliseconds) {
    return nanoseconds_to_absolute_time(milliseconds * 1'000'000);
}

std::uint64_t absolute_time_to_microseconds(std::uint64_t ticks) {
    return convert(ticks, machine::ticks_per_second(), 1'000'000, 0);
}

}  // namespace kernel
