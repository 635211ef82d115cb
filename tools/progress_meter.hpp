#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace tools {

/// Tells on standard error how far something has come: on a terminal a bar with rate and time left,
/// which is drawn over, otherwise a line now and then.
class ProgressMeter {
  public:
    ProgressMeter();
    ~ProgressMeter() { clear(); }
    ProgressMeter(const ProgressMeter&) = delete;
    ProgressMeter& operator=(const ProgressMeter&) = delete;

    /// `done` of `total` bytes are here. What counts for the rate is what came since the first
    /// call, or since the total is another one.
    void show(std::uint64_t done, std::uint64_t total);
    /// Takes the bar away: the next words are somebody else's. show() draws it again.
    void clear();
    /// What comes is something else.
    void restart();
    /// Bytes a second, as far as that can be told.
    std::optional<double> rate() const;

  private:
    using Clock = std::chrono::steady_clock;

    bool terminal_;
    bool drawn_ = false;
    std::uint64_t total_ = 0, first_ = 0, done_ = 0;
    Clock::time_point begin_{}, last_{}, told_{};
    unsigned percent_ = 0;
};

}  // namespace tools
