#pragma once

#include <cstdint>

#include "stackshot/atomic.hpp"
#include "stackshot/capture_state.hpp"
#include "stackshot/system.hpp"

namespace stackshot {

/// A lock among the CPUs of one capture, for a few instructions at a time. Its holder runs with
/// interrupts off inside the same trap, so nobody waits for a stopped CPU. Waits through the
/// system's events, and raises one at unlock only if somebody waits.
class CaptureLock {
  public:
    /// False, and not locked, if the collection panicked while this CPU waited: the holder may be
    /// the CPU that did.
    [[nodiscard]] bool lock(System& system, const CaptureState& state);
    void unlock(System& system);

  private:
    enum : std::uint32_t { open, held, contended };
    Atomic<std::uint32_t> word_{open};
};

}  // namespace stackshot
