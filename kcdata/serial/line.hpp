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
    /// Console text, or noise; arbitrary bytes without 0x00. Cut anywhere: but for what may be the
    /// first characters of a text frame, nothing is held back until a line ends.
    virtual void text(std::span<const std::byte> bytes) = 0;
    /// A frame whose CRC is right. Its body is valid during the call only.
    virtual void frame(const Frame& frame) = 0;
    /// Something that began like a frame and is none: `size` bytes of the line from `position`.
    virtual void damaged(std::uint64_t position, std::size_t size) = 0;

  protected:
    ~LineHandler() = default;
};

/// Separates console text from frames of either encoding, byte by byte: any cutting of the input
/// gives the same result. Allocates nothing; holds at most one frame. After damage it is in step
/// again at the next 0x00 (or the end of the line of text), or after the length of the longest
/// frame at the latest.
class Line {
  public:
    /// `room` is for one frame, and both outlive this: a frame with a longer body is damage.
    template <std::size_t Body>
    struct Room {
        std::array<std::byte, frame_size(Body)> bytes{};
    };
    template <std::size_t Body>
    Line(LineHandler& handler, Room<Body>& room) : handler_(handler), bytes_(room.bytes) {}

    void feed(std::span<const std::byte> bytes);
    /// The line ended: a frame that has begun is damaged.
    void finish();
    /// Bytes of the line so far.
    std::uint64_t position() const { return position_; }

  private:
    enum class State : std::uint8_t {
        text,
        prefix,  ///< of a text frame, perhaps
        after_zero,
        frame,       ///< in COBS
        text_frame,  ///< in base64
        skip,        ///< the rest of a damaged frame
        text_skip,
        after_text_frame,  ///< where CR LF follows
    };

    /// Takes `byte`, or false: the state has changed, and it is to be looked at again.
    bool take(std::byte byte);
    void decode(std::byte byte);
    bool decode_base64(std::byte byte);
    void begin(State state, std::uint64_t position);
    /// Adds a byte to the frame; what is wrong with it is skipped.
    void put(std::byte byte, Encoding encoding);
    void end_damage(std::uint64_t end, State next);

    LineHandler& handler_;
    std::span<std::byte> bytes_;
    State state_ = State::text;
    /// Bytes of the line before the one at hand, and where the frame at hand began.
    std::uint64_t position_ = 0;
    std::uint64_t start_ = 0;
    std::size_t size_ = 0;
    /// COBS: bytes until the next code byte, and whether a zero stands in its place.
    std::uint8_t left_ = 0;
    bool zero_next_ = false;
    /// Base64: bits that are no whole byte yet, and how many.
    std::uint16_t bits_ = 0;
    std::uint8_t bit_count_ = 0;
    /// Characters of the prefix that were there.
    std::uint8_t prefix_ = 0;
};

}  // namespace kcdata::serial
