#pragma once

#include <cstddef>
#include <span>

namespace kcdata {

// Behind damage: where items begin to make sense again. An item makes sense if a kernel would write
// it, by its header alone: of a known type, with flags and a size that go with it.

/// Whether items that make sense stand at `offset`, one behind the other: `count` of them, or all
/// up to BUFFER_END or to the end of the buffer, which may cut the last of several. Takes any
/// offset.
bool items_follow(std::span<const std::byte> buffer, std::size_t offset, unsigned count);

/// The first place behind `offset` where four items follow; the size of the buffer if there is
/// none. Items stand at multiples of 16 bytes, as every size is one.
std::size_t find_items(std::span<const std::byte> buffer, std::size_t offset);

}  // namespace kcdata
