#pragma once

#include <cstddef>
#include <span>

#include "kcdata/result.hpp"

namespace kernel {

class BootArguments;

/// How captures are sent that nobody asks for again, frame by frame, if the line loses some:
///
///     stackshot.encoding=binary|text  frames as they are, or as lines of text for a line that is
///                                     not 8-bit clean
///     stackshot.parity=N              parity frames for each 100 frames, to restore lost ones: 0
///     to
///                                     100 (0); see kcdata::serial::SenderOptions
///     stackshot.repeats=N             how often everything is sent (1)
///     stackshot.payload=N             bytes of the capture in each frame (as long as can be; 128
///                                     with parity frames)
///
/// Once, before the first capture; a panic's may be that.
void configure_capture_sender(BootArguments& arguments);

/// Sends a finished capture over the console's line, frame by frame: other threads' text comes in
/// between. Where the console may be used. The errors are those of kcdata::serial::Sender.
kcdata::kern_return send_capture(std::span<const std::byte> capture);

}  // namespace kernel
