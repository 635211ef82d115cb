#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"

/// Captures, requests and answers travel over a serial line as frames between console text.
///
/// A frame is, all numbers little-endian,
///
///     offset  size
///          0     1  0
///          1     1  kind
///          2     2  n, bytes of the body
///          4     n  body
///      4 + n     4  CRC-32C of everything before it
///
/// On the line it is
///
///     0x00  COBS(frame)  0x00
///
/// COBS leaves no 0x00 inside, and console text has none, so a 0x00 always ends whatever came
/// before. The frame begins with a zero byte, so the first byte behind the opening 0x00 is always
/// 0x01: anything else there is console text. For lines that are not 8-bit clean the same frame is
/// a line of text,
///
///     ~kc:  base64(frame)  CR LF
///
/// in the alphabet of RFC 4648 (section 4) without padding. Both may stand on the same line.
namespace kcdata::serial {

inline constexpr std::size_t frame_header_size = 4;
inline constexpr std::size_t frame_crc_size = 4;
/// What a frame with such a body takes before it is encoded; with COBS, which puts one code byte in
/// front of every 254 bytes; and on the line, in each encoding.
constexpr std::size_t frame_size(std::size_t body) {
    return frame_header_size + body + frame_crc_size;
}
constexpr std::size_t cobs_size(std::size_t frame) {
    return frame + frame / 254 + 1;
}
constexpr std::size_t frame_size_on_line(std::size_t body) {
    return cobs_size(frame_size(body)) + 2;
}
constexpr std::size_t base64_size(std::size_t frame) {
    return (frame * 4 + 2) / 3;
}
inline constexpr char text_frame_prefix[] = "~kc:";
inline constexpr std::size_t text_frame_prefix_size = sizeof(text_frame_prefix) - 1;
constexpr std::size_t text_frame_size_on_line(std::size_t body) {
    return text_frame_prefix_size + base64_size(frame_size(body)) + 2;
}

/// Of data frames (data_frame.hpp), the longest there are: one is less than 4 KiB on the line, and
/// costs less than 1 % more than its payload.
inline constexpr std::size_t max_frame_payload = 3840;
inline constexpr std::size_t max_frame_body = max_frame_payload + 16;
inline constexpr std::size_t max_frame_size_on_line = frame_size_on_line(max_frame_body);
inline constexpr std::size_t max_text_frame_size_on_line = text_frame_size_on_line(max_frame_body);

enum class FrameKind : std::uint8_t {
    data = 1,       ///< bytes of a capture (DataFrame)
    end = 2,        ///< all data frames of a capture were sent (DataFrame)
    parity = 3,     ///< repairs lost data frames of a capture (ParityFrame)
    text_data = 4,  ///< bytes of an answer too long for a frame (DataFrame)
    request = 5,    ///< from the host (message.hpp)
    answer = 6,     ///< from the unikernel
};

/// How a frame is written.
enum class Encoding : std::uint8_t {
    binary = 0,
    text = 1,  ///< for lines that are not 8-bit clean
};

/// One frame. Made by Line from checked bytes; the body belongs to its kind's codec.
struct Frame {
    FrameKind kind = FrameKind::data;
    Encoding encoding = Encoding::binary;  ///< how it was written
    std::span<const std::byte> body{};
};

/// Where a sender's bytes go: the UART, a socket, a test.
class ByteSink {
  public:
    /// Takes all of `bytes` or says why not. May wait a bounded time for the line.
    virtual kern_return write(std::span<const std::byte> bytes) = 0;
    /// A whole frame was written: other text may come in between from here on.
    virtual kern_return end_frame() { return KERN_SUCCESS; }

  protected:
    ~ByteSink() = default;
};

/// Writes the frame whose body is `head` and then `rest`, delimiters included, and ends it.
/// Allocates nothing. KERN_INVALID_ARGUMENT: the body is longer than max_frame_body. Otherwise the
/// sink's error.
kern_return write_frame(ByteSink& sink, Encoding encoding, FrameKind kind,
                        std::span<const std::byte> head, std::span<const std::byte> rest = {});

/// Bytes of the whole frame, CRC included, as its header tells it; may be more than a frame has.
std::size_t told_frame_size(std::span<const std::byte, frame_header_size> header);

/// Checks the bytes of one frame, `encoding` already undone, and points `frame` into them. False if
/// length or CRC are wrong.
bool parse_frame(std::span<const std::byte> bytes, Encoding encoding, Frame& frame);

}  // namespace kcdata::serial
