#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kcdata/serial/sender.hpp"

namespace tools_test {

using Bytes = std::vector<std::byte>;

/// The first 16 bytes of the build-id that small_capture() claims.
inline constexpr std::uint8_t small_capture_uuid[16] = {
    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};

/// A stackshot of two tasks with threads in every state; see captures.cpp.
Bytes small_capture();

/// `capture` as the unikernel sends it, in frames of `payload` bytes, between lines of console
/// text.
Bytes line_with(const Bytes& capture, std::size_t payload = 128);

}  // namespace tools_test
