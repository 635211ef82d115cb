#pragma once

#include "platform/arm64/cpu/hints.hpp"
#include "platform/arm64/timer/generic_timer.hpp"

namespace platform::timer {

/// Waits until `done()`; false if that takes more than a second, which no device here needs.
template <typename Done>
[[nodiscard]] bool wait_until(Done done) {
    const std::uint64_t deadline = ticks() + frequency();
    while (!done()) {
        if (ticks() > deadline)
            return done();
        cpu::yield();
    }
    return true;
}

}  // namespace platform::timer
