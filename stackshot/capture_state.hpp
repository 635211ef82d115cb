#pragma once

#include <atomic>
#include <cstdint>

#include "kcdata/result.hpp"

namespace stackshot {

/// How far a collection has come, seen by all CPUs that take part: a state and, once it failed, the
/// first error, in one word.
///
///     INACTIVE -> SETUP -> RUNNING -> INACTIVE
///                   \---------\-> ERRORED -> INACTIVE
class CaptureState {
  public:
    enum State : std::uint32_t { INACTIVE, SETUP, RUNNING, ERRORED };

    /// Acquire: a CPU that sees RUNNING sees what was set up before.
    State state() const {
        return static_cast<State>(word_.load(std::memory_order_acquire) & state_mask);
    }
    /// KERN_SUCCESS unless the state is ERRORED.
    kcdata::kern_return error() const {
        const std::uint32_t word = word_.load(std::memory_order_acquire);
        return (word & state_mask) == ERRORED ? static_cast<kcdata::kern_return>(word >> state_bits)
                                              : kcdata::KERN_SUCCESS;
    }

    /// INACTIVE to SETUP. False if it is not INACTIVE.
    bool set_up() { return change(INACTIVE, SETUP); }
    /// SETUP to RUNNING. False if an error came first.
    bool run() { return change(SETUP, RUNNING); }
    /// To ERRORED, from RUNNING or SETUP. False if another error came first, which is then kept.
    bool fail(kcdata::kern_return error) {
        const std::uint32_t failed = static_cast<std::uint32_t>(error) << state_bits | ERRORED;
        return change(RUNNING, failed) || change(SETUP, failed);
    }
    /// To INACTIVE, when no CPU is left inside.
    void finish() { word_.store(INACTIVE, std::memory_order_release); }

  private:
    static constexpr std::uint32_t state_bits = 3;
    static constexpr std::uint32_t state_mask = (1U << state_bits) - 1;

    bool change(std::uint32_t from, std::uint32_t to) {
        // Release: publishes what was written in the state that ends.
        return word_.compare_exchange_strong(from, to, std::memory_order_acq_rel,
                                             std::memory_order_acquire);
    }

    std::atomic<std::uint32_t> word_{INACTIVE};
};

}  // namespace stackshot
