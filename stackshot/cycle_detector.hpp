#pragma once

#include <cstdint>

namespace stackshot {

/// Finds out that a list runs in a circle: Brent's algorithm, at the cost of a compare a step.
template <typename Ref>
class CycleDetector {
  public:
    /// True if the list has come back to an element it had before. Each circle is found within
    /// three times the elements it and the way to it have.
    bool step(Ref element) {
        if (element == landmark_)
            return true;
        if (++steps_ == stride_) {
            landmark_ = element;
            stride_ *= 2;
            steps_ = 0;
        }
        return false;
    }

  private:
    Ref landmark_ = Ref::none;
    std::uint64_t steps_ = 0;
    std::uint64_t stride_ = 1;
};

}  // namespace stackshot
