#pragma once

#include <cstddef>
#include <span>

#include "kcdata/result.hpp"

namespace kernel {

/// A finished capture, compressed in pages of its own.
struct CompressedCapture {
    std::span<std::byte> pages{};  ///< the caller gives them back to the page allocator
    std::size_t size = 0;          ///< bytes of them that are the capture
};

/// Compresses a plain capture as the collector does, but for those that it refuses to compress,
/// as XNU's does. KERN_RESOURCE_SHORTAGE: no memory. KERN_INVALID_ARGUMENT: no plain capture.
/// Thread context.
kcdata::Result<CompressedCapture> compress_capture(std::span<const std::byte> capture);

}  // namespace kernel
