#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "platform/arm64/exception/frame.hpp"
#include "platform/arm64/types.hpp"

/// The image we run from, by the symbols of boot/image.ld.
namespace platform::image {

/// Address the image is linked at and runs at.
std::uint64_t link_address();
/// Where it was loaded.
PhysicalAddress load_address();
/// Bytes from the first instruction to the end of BSS and boot stacks.
std::size_t size();
/// Bytes from the first instruction to the end of what is never written: code and constants.
std::size_t constants_size();
/// Its code.
CodeRange text();
/// The identifier of the GNU build-id note, 20 bytes; empty if the note is not as it should be.
std::span<const std::byte> build_id();
/// .eh_frame_hdr and .eh_frame as one span; used where it lies.
std::span<const std::byte> unwind_tables();

}  // namespace platform::image
