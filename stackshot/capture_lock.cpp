#include "stackshot/capture_lock.hpp"

namespace stackshot {

bool CaptureLock::lock(System& system, const CaptureState& state) {
    std::uint32_t expected = open;
    // Acquire: see what the last holder wrote.
    if (word_.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                      std::memory_order_relaxed))
        return true;
    while (word_.exchange(contended, std::memory_order_acquire) != open) {
        if (state.panicked())
            return false;
        system.wait_for_event();
    }
    return true;
}

void CaptureLock::unlock(System& system) {
    // Release: the next holder sees what this one wrote.
    if (word_.exchange(open, std::memory_order_release) == contended)
        system.signal_event();
}

}  // namespace stackshot
