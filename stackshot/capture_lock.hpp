#pragma once

#include <atomic>
#include <cstdint>

#include "stackshot/system.hpp"

namespace stackshot {

/// A lock among the CPUs of one capture, for a few instructions at a time. Its holder runs with
/// interrupts off inside the same trap, so nobody waits for a stopped CPU. Waits through the
/// system's events, and raises one at unlock only if somebody waits.
class CaptureLock {
  public:
    void lock(System& system);
    void unlock(System& system);

  private:
    enum : std::uint32_t { open, held, contended };
    std::atomic<std::uint32_t> state_{open};
};

}  // namespace stackshot
