#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"

/// A capture travels over a serial line as frames between console text.
///
/// On the line a frame is
///
///     0x00  COBS(header, payload, CRC-32C)  0x00
///
/// COBS leaves no 0x00 inside, and console text has none, so a 0x00 always ends whatever came
/// before. The header begins with a zero byte, so the first byte behind the opening 0x00 is always
/// 0x01: anything else there is console text. All numbers are little-endian.
///
///     offset  size
///          0     1  0
///          1     1  kind
///          2     2  payload bytes
///          4     4  capture: CRC-32C of the whole capture, which names it
///          8     4  number: 0, 1, 2, ... of data frames; in the end frame the number of them
///         12     4  offset of the payload in the capture; in the end frame the total
///         16     4  total: bytes of the whole capture
///         20     n  payload
///     20 + n     4  CRC-32C of everything before it
///
/// The capture's name depends on its content only: frames of two captures never mix, whatever was
/// on the line before, and a frame sent again fits in wherever the first one is missing.
namespace kcdata::serial {

inline constexpr std::size_t frame_header_size = 20;
inline constexpr std::size_t frame_crc_size = 4;
inline constexpr std::size_t max_frame_payload = 2048;
inline constexpr std::size_t max_frame_size =
    frame_header_size + max_frame_payload + frame_crc_size;
/// Of the longest frame with COBS, which puts one code byte in front of every 254 bytes; without
/// and with both delimiters.
inline constexpr std::size_t max_encoded_frame_size = max_frame_size + max_frame_size / 254 + 1;
inline constexpr std::size_t max_frame_size_on_line = max_encoded_frame_size + 2;

enum class FrameKind : std::uint8_t {
    data = 1,  ///< carries bytes of a capture
    end = 2,   ///< all data frames were sent
};

/// One frame. Made by a sender, or by Line from checked bytes.
struct Frame {
    FrameKind kind = FrameKind::data;
    std::uint32_t capture = 0;
    std::uint32_t number = 0;
    std::uint32_t offset = 0;
    std::uint32_t total = 0;
    std::span<const std::byte> payload{};
};

/// Where a sender's bytes go: the UART, a socket, a test.
class ByteSink {
  public:
    /// Takes all of `bytes` or says why not. May wait a bounded time for the line.
    virtual kern_return write(std::span<const std::byte> bytes) = 0;

  protected:
    ~ByteSink() = default;
};

/// Writes `frame`, delimiters included. Allocates nothing.
/// KERN_INVALID_ARGUMENT: the payload is too long or does not lie inside the total. Otherwise the
/// sink's error.
kern_return write_frame(ByteSink& sink, const Frame& frame);

/// Bytes of the whole frame, CRC included, as its header tells it; may be more than max_frame_size.
std::size_t frame_size(std::span<const std::byte, frame_header_size> header);

/// Checks the bytes of one frame, COBS already undone, and points `frame` into them. False if
/// length, CRC, kind or the numbers in it are wrong.
bool parse_frame(std::span<const std::byte> bytes, Frame& frame);

}  // namespace kcdata::serial
