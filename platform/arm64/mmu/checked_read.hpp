#pragma once

#include "platform/arm64/exception/frame.hpp"

namespace platform::mmu {

/// If `frame` is a data abort of checked_read(), makes it return false, and says so.
bool fix_up_checked_read(ExceptionFrame& frame);

/// Whether the code that may fault is where the fix-up looks for it; the image's link can break it.
bool checked_read_intact();

}  // namespace platform::mmu
