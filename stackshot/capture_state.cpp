#include "stackshot/capture_state.hpp"

namespace stackshot {

bool CaptureState::change(std::uint32_t from, std::uint32_t to) {
    // Release: publishes what was written in the state that ends.
    return word_.compare_exchange_strong(from, to, std::memory_order_acq_rel,
                                         std::memory_order_acquire);
}

bool CaptureState::fail(kcdata::kern_return error) {
    const std::uint32_t failed = static_cast<std::uint32_t>(error) << state_bits | ERRORED;
    return change(RUNNING, failed) || change(SETUP, failed);
}

bool CaptureState::panic() {
    std::uint32_t word = word_.load(std::memory_order_relaxed);
    do {
        if (state_of(word) == INACTIVE)
            return false;
        // In one order with the initiator's entry into the collection, see Collection::initiator.
    } while (!word_.compare_exchange_weak(word, PANICKED, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
    return true;
}

bool CaptureState::finish() {
    std::uint32_t word = word_.load(std::memory_order_relaxed);
    do {
        if (state_of(word) == PANICKED)
            return false;
    } while (!word_.compare_exchange_weak(word, INACTIVE, std::memory_order_release,
                                          std::memory_order_relaxed));
    return true;
}

}  // namespace stackshot
