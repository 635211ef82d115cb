#include "stackshot/capture_lock.hpp"

namespace stackshot {

void CaptureLock::lock(System& system) {
    std::uint32_t expected = open;
    // Acquire: see what the last holder wrote.
    if (state_.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                       std::memory_order_relaxed))
        return;
    while (state_.exchange(contended, std::memory_order_acquire) != open)
        system.wait_for_event();
}

void CaptureLock::unlock(System& system) {
    // Release: the next holder sees what this one wrote.
    if (state_.exchange(open, std::memory_order_release) == contended)
        system.signal_event();
}

}  // namespace stackshot
