#pragma once

#include <cstdint>

#include "stackshot/system.hpp"

namespace stackshot {

/// Converts absolute time to whole microseconds, rounded down: exact for every time, and for all
/// times that occur by a multiplication instead of a division.
class Microseconds {
  public:
    explicit Microseconds(const Timebase& timebase);

    std::uint64_t operator()(std::uint64_t time) const {
        if (time > multiplied_to_) [[unlikely]]
            return divide(time);
        __extension__ using uint128 = unsigned __int128;
        return static_cast<std::uint64_t>(uint128{time} * multiplier_ >> 64) >> shift_;
    }
    /// Times up to this are converted by the multiplication.
    std::uint64_t multiplied_to() const { return multiplied_to_; }

  private:
    std::uint64_t divide(std::uint64_t time) const;

    // time * numerator_ / denominator_, in lowest terms.
    std::uint64_t numerator_;
    std::uint64_t denominator_;
    // For times up to multiplied_to_ the same as time * multiplier_ / 2^(64 + shift_).
    std::uint64_t multiplier_ = 0;
    unsigned shift_ = 0;
    std::uint64_t multiplied_to_ = 0;
};

}  // namespace stackshot
