#pragma once

#include <cstdint>

#include "platform/arm64/exception/frame.hpp"
#include "stackshot/system.hpp"

namespace kernel {

/// Where the function that this is called in returns to, as its caller's registers there.
[[gnu::always_inline]] inline stackshot::Registers callers_registers() {
    const auto* const record =
        static_cast<const platform::FrameRecord*>(__builtin_frame_address(0));
    return {
        .pc = record->lr,
        .lr = 0,
        .fp = record->fp,
        .sp = reinterpret_cast<std::uint64_t>(__builtin_dwarf_cfa()),
    };
}

/// The same, but the PC is the call itself: for a thread on a CPU, which is shown where it stands,
/// and for a call that does not return, behind which another function may begin.
[[gnu::always_inline]] inline stackshot::Registers callers_registers_at_call() {
    constexpr std::uint64_t instruction_size = 4;
    stackshot::Registers registers = callers_registers();
    registers.pc -= instruction_size;
    return registers;
}

}  // namespace kernel
