#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kcdata/serial/data_frame.hpp"

namespace kcdata::serial {

/// How far an object has come.
struct Progress {
    std::uint32_t object = 0;
    std::uint32_t total = 0;     ///< bytes
    std::uint32_t received = 0;  ///< bytes
    bool end_seen = false;       ///< the sender has sent everything, once at least
};

/// The bytes of one object that have arrived, in any order, size and number. Host only: it
/// allocates, in proportion to the bytes that arrived and never to the total.
class Gathering {
  public:
    Gathering(std::uint32_t object, std::uint32_t total) : object_(object), total_(total) {}

    std::uint32_t object() const { return object_; }
    std::uint32_t total() const { return total_; }
    std::uint32_t received() const { return received_; }
    bool complete() const { return received_ == total_; }

    /// Takes the bytes from `offset` on, which lie inside the total; how many of them were new.
    std::uint32_t store(std::uint32_t offset, std::span<const std::byte> bytes);
    /// Whether all bytes of `range`, which lies inside the total, have arrived.
    bool has(const Range& range) const;
    /// The bytes of `range`; requires has(range).
    std::vector<std::byte> read(const Range& range) const;
    /// What has not arrived, in order.
    std::vector<Range> missing() const;
    /// All bytes before the first gap.
    std::vector<std::byte> bytes() const;
    /// Whether all is there and its CRC is the object's name.
    bool verified() const;

  private:
    using Pieces = std::map<std::uint32_t, std::vector<std::byte>>;

    /// The piece that holds the byte at `offset`, or the end.
    Pieces::const_iterator find(std::uint32_t offset) const;

    std::uint32_t object_;
    std::uint32_t total_;
    std::uint32_t received_ = 0;
    Pieces pieces_;  ///< by offset; they do not overlap
};

}  // namespace kcdata::serial
