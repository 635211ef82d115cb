#pragma once

#include <cstdint>

#include "kcdata/result.hpp"
#include "stackshot/atomic.hpp"

namespace stackshot {

/// How far a collection has come, seen by all CPUs that take part: a state and, once it failed, the
/// first error, in one word.
///
///     INACTIVE -> SETUP -> RUNNING -> INACTIVE
///                   \---------\-> ERRORED -> INACTIVE
///                    \---------\-----\-> PANICKED        for good
class CaptureState {
  public:
    enum State : std::uint32_t { INACTIVE, SETUP, RUNNING, ERRORED, PANICKED };

    /// Acquire: a CPU that sees RUNNING sees what was set up before.
    State state() const { return state_of(word_.load(std::memory_order_acquire)); }
    /// Sequentially consistent, as panic() is.
    bool panicked() const { return state_of(word_.load(std::memory_order_seq_cst)) == PANICKED; }
    /// The first error; KERN_SUCCESS unless the state is ERRORED. KERN_ABORTED if it is PANICKED.
    kcdata::kern_return error() const {
        const std::uint32_t word = word_.load(std::memory_order_acquire);
        if (state_of(word) == PANICKED)
            return kcdata::KERN_ABORTED;
        return state_of(word) == ERRORED ? static_cast<kcdata::kern_return>(word >> state_bits)
                                         : kcdata::KERN_SUCCESS;
    }

    /// INACTIVE to SETUP. False if it is not INACTIVE.
    bool set_up() { return change(INACTIVE, SETUP); }
    /// SETUP to RUNNING. False if an error or a panic came first.
    bool run() { return change(SETUP, RUNNING); }
    /// To ERRORED, from RUNNING or SETUP. False if another error came first, which is then kept.
    bool fail(kcdata::kern_return error);
    /// To PANICKED, from any state but INACTIVE; false if it is that. By a CPU that panics, in any
    /// context.
    bool panic();
    /// To INACTIVE, when no CPU is left inside. False after a panic.
    bool finish();

  private:
    static constexpr std::uint32_t state_bits = 3;
    static constexpr std::uint32_t state_mask = (1U << state_bits) - 1;

    static State state_of(std::uint32_t word) { return static_cast<State>(word & state_mask); }
    bool change(std::uint32_t from, std::uint32_t to);

    Atomic<std::uint32_t> word_{INACTIVE};
};

}  // namespace stackshot
