#pragma once

#include <cstdint>

#include "platform/arm64/exception/frame.hpp"

namespace platform {

/// Entry of the vector table that was taken, in its order [DDI 0487 D1.3.1.5].
enum class Vector : std::uint64_t {
    current_el_sp0_sync,
    current_el_sp0_irq,
    current_el_sp0_fiq,
    current_el_sp0_serror,
    current_el_spx_sync,
    current_el_spx_irq,
    current_el_spx_fiq,
    current_el_spx_serror,
    lower_el_aarch64_sync,
    lower_el_aarch64_irq,
    lower_el_aarch64_fiq,
    lower_el_aarch64_serror,
    lower_el_aarch32_sync,
    lower_el_aarch32_irq,
    lower_el_aarch32_fiq,
    lower_el_aarch32_serror,
    /// Not an entry of its own: whatever was taken, the stack had no room for its frame.
    stack_overflow,
};

/// The vector's name as above.
const char* name(Vector vector);

/// What ESR_EL1.EC stands for, in the Arm ARM's words.
const char* exception_class_name(std::uint64_t esr);

// The handlers. Declared here, defined by the kernel; called on the interrupted context's stack
// with DAIF masked, but for SErrors in handle_irq().

/// An IRQ is pending at the interrupt controller. The frame is restored on return; the handler may
/// switch to another context in between and return when it is switched back to.
void handle_irq(ExceptionFrame& frame);

/// Anything we cannot go on from. With Vector::stack_overflow it runs on this CPU's overflow stack
/// and frame.sp is outside of its stack.
[[noreturn]] void handle_unexpected_exception(const ExceptionFrame& frame, Vector vector);

/// Sets this CPU's VBAR_EL1 to our vectors. The handlers must be ready for exceptions, and the
/// overflow stack set.
void install_vectors();

/// Gives this CPU the stack that exceptions use when their own stack is full: `top` of a stack as
/// mmu/layout.hpp describes. Interrupts off. Boot has done it for every CPU before the kernel sees
/// it.
void set_overflow_stack(std::uint64_t top);

}  // namespace platform
