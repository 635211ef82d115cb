#pragma once

#include "platform/arm64/devicetree/board.hpp"

namespace kernel {

/// The calling CPU is the boot CPU: from here on an exception is reported. As soon as BSS is
/// cleared and the overflow stack is set.
void adopt_boot_cpu();

/// Where boot hands the boot CPU over to the kernel: at EL1 in the kernel's address space, on the
/// boot stack, IRQs masked, adopt_boot_cpu() called, FP/SIMD usable, the board's UART and PSCI
/// initialized. `board` lives as long as the system. Secondaries come in at
/// platform::kernel_secondary_main().
[[noreturn]] void kernel_main(const platform::Board& board);

}  // namespace kernel
