#pragma once

#include <cstddef>
#include <span>

#include "kcdata/result.hpp"

namespace kernel {

/// Sends a finished capture over the console's line, frame by frame: other threads' text comes in
/// between. Where the console may be used. The errors are those of kcdata::serial::Sender.
kcdata::kern_return send_capture(std::span<const std::byte> capture);

}  // namespace kernel
