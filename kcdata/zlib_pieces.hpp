#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace kcdata {

// zlib counts in 32 bits: it is given large spans piece by piece.
inline constexpr std::size_t largest_zlib_piece = std::size_t{1} << 30;

/// Hands the next piece of `input` to `stream`, once it has taken the one before.
inline void feed(z_stream& stream, std::span<const std::byte>& input) {
    if (stream.avail_in != 0)
        return;
    const auto piece = input.first(std::min(input.size(), largest_zlib_piece));
    // Not written to: zlib's interface is older than const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    input = input.subspan(piece.size());
}

/// Has `stream` write to the front of `room`; to how much of it.
inline uInt give_room(z_stream& stream, std::span<std::byte> room) {
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(std::min(room.size(), largest_zlib_piece));
    return stream.avail_out;
}

}  // namespace kcdata
