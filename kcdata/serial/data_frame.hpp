#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/serial/frame.hpp"

namespace kcdata::serial {

/// Bytes of an object.
struct Range {
    std::uint32_t offset = 0;
    std::uint32_t length = 0;

    bool operator==(const Range&) const = default;
};

/// The frame that carries bytes of an object: kind data (of a capture) or text_data (of a long
/// answer); or, kind end, says that all of a capture was sent.
///
///     offset  size
///          0     4  object: CRC-32C of the whole object, which names it
///          4     4  offset of the payload in the object; in the end frame the total
///          8     4  total: bytes of the whole object
///         12     n  payload
///
/// The object's name depends on its content only: frames of two captures never mix, whatever was
/// on the line before, and a frame sent again fits in wherever the first one is missing.
struct DataFrame {
    FrameKind kind = FrameKind::data;
    std::uint32_t object = 0;
    std::uint32_t offset = 0;
    std::uint32_t total = 0;
    std::span<const std::byte> payload{};
};

inline constexpr std::size_t data_head_size = 12;
static_assert(data_head_size + max_frame_payload <= max_frame_body);

/// KERN_INVALID_ARGUMENT: the payload is too long or does not lie inside the total. Otherwise the
/// sink's error.
kern_return write_data_frame(ByteSink& sink, Encoding encoding, const DataFrame& frame);

/// False if `frame` is of another kind or the numbers in it contradict each other. The payload
/// points into the frame's body.
bool parse_data_frame(const Frame& frame, DataFrame& data);

}  // namespace kcdata::serial
