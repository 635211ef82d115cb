#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/serial/frame.hpp"

namespace kcdata::serial {

/// What Line finds, in the order of the line.
class LineHandler {
  public:
    /// Console text, or noise; arbitrary bytes without 0x00. Cut anywhere: nothing is held back
    /// until a line ends.
    virtual void text(std::span<const std::byte> bytes) = 0;
    /// A frame whose CRC is right. Its payload is valid during the call only.
    virtual void frame(const Frame& frame) = 0;
    /// Something that began like a frame and is none: `size` bytes of the line from `position`.
    virtual void damaged(std::uint64_t position, std::size_t size) = 0;

  protected:
    ~LineHandler() = default;
};

/// Separates console text from frames, byte by byte: any cutting of the input gives the same
/// result. Allocates nothing; holds at most one frame. After damage it is in step again at the
/// next 0x00, or after the length of the longest frame at the latest.
class Line {
  public:
    explicit Line(LineHandler& handler) : handler_(handler) {}

    void feed(std::span<const std::byte> bytes);
    /// The line ended: a frame that has begun is damaged.
    void finish();

  private:
    enum class State : std::uint8_t { text, after_zero, frame, skip };

    void take(std::byte byte);
    void decode(std::byte byte);
    void put(std::byte byte);
    void end_damage(std::uint64_t end, State next);

    LineHandler& handler_;
    State state_ = State::text;
    /// Bytes of the line before the one at hand, and where the frame at hand began.
    std::uint64_t position_ = 0;
    std::uint64_t start_ = 0;
    /// COBS: bytes until the next code byte, and whether a zero stands in its place.
    std::uint8_t left_ = 0;
    bool zero_next_ = false;
    std::size_t size_ = 0;
    std::array<std::byte, max_frame_size> bytes_{};
};

}  // namespace kcdata::serial
