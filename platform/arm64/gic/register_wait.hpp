#pragma once

#include "platform/arm64/cpu/hints.hpp"
#include "platform/arm64/timer/generic_timer.hpp"

namespace platform {

/// Waits until `done()`; false if that took more than a second, which no GIC needs for a register.
template <typename Done>
[[nodiscard]] bool wait_until(Done done) {
    const std::uint64_t deadline = timer::ticks() + timer::frequency();
    while (!done()) {
        if (timer::ticks() > deadline)
            return done();
        cpu::yield();
    }
    return true;
}

}  // namespace platform
