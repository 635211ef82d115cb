#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "kcdata/serial/gathering.hpp"
#include "kcdata/serial/parity.hpp"

namespace kcdata::serial {

/// Restores lost data frames of one capture from parity frames. Host only: it allocates, in
/// proportion to the parity frames that arrived.
class Repair {
  public:
    /// Takes a parity frame of the capture that `gathering` gathers, and what can be restored now
    /// goes there. Returns how many bytes that were.
    std::uint32_t take(const ParityFrame& frame, Gathering& gathering);
    /// The same after data of `range` arrived.
    std::uint32_t take(const Range& range, Gathering& gathering);

  private:
    using Sums = std::map<std::uint32_t, std::vector<std::byte>>;  ///< by number of the parity

    static std::uint32_t restore(const ParityLayout& layout, std::uint32_t group, const Sums& sums,
                                 Gathering& gathering);

    /// Senders may use several layouts, one after the other.
    struct Scheme {
        ParityLayout layout;
        std::map<std::uint32_t, Sums> groups{};
    };
    std::vector<Scheme> schemes_;
};

}  // namespace kcdata::serial
