#pragma once

#include <cstdint>

#include "stackshot/system.hpp"

namespace stackshot {

/// Measures one stretch of absolute time after the other. One that is off reads no clock, and all
/// its stretches are 0.
class Stopwatch {
  public:
    Stopwatch(const System& system, bool on)
        : system_(on ? &system : nullptr), last_(on ? system.absolute_time() : 0) {}

    bool on() const { return system_ != nullptr; }
    /// The time since the call before, or since the stopwatch was made.
    std::uint64_t lap() {
        if (!on())
            return 0;
        const std::uint64_t before = last_;
        last_ = system_->absolute_time();
        return last_ - before;
    }

  private:
    const System* system_;
    std::uint64_t last_;
};

}  // namespace stackshot
