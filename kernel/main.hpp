#pragma once

#include "platform/arm64/devicetree/board.hpp"

namespace kernel {

/// Where boot hands the boot CPU over to the kernel: at EL1 in the kernel's address space, on the
/// boot stack, IRQs masked, vectors installed, overflow stack set, FP/SIMD usable, the board's UART
/// initialized. `board` lives as long as the system. Secondaries come in at
/// platform::kernel_secondary_main().
[[noreturn]] void kernel_main(const platform::Board& board);

}  // namespace kernel
