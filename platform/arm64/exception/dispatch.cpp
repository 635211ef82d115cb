#include <cstddef>

#include "platform/arm64/cpu/barrier.hpp"
#include "platform/arm64/cpu/interrupts.hpp"
#include "platform/arm64/cpu/sysreg.hpp"
#include "platform/arm64/exception/frame.hpp"
#include "platform/arm64/exception/frame_offsets.hpp"
#include "platform/arm64/exception/handlers.hpp"
#include "platform/arm64/mmu/checked_read.hpp"
#include "platform/arm64/mmu/layout.hpp"

namespace platform {

static_assert(offsetof(ExceptionFrame, x) == FRAME_X);
static_assert(offsetof(ExceptionFrame, sp) == FRAME_SP);
static_assert(offsetof(ExceptionFrame, elr) == FRAME_ELR);
static_assert(offsetof(ExceptionFrame, spsr) == FRAME_SPSR);
static_assert(offsetof(ExceptionFrame, esr) == FRAME_ESR);
static_assert(offsetof(ExceptionFrame, far) == FRAME_FAR);
static_assert(offsetof(ExceptionFrame, record) == FRAME_RECORD);
static_assert(offsetof(ExceptionFrame, q) == FRAME_Q);
static_assert(offsetof(ExceptionFrame, fpsr) == FRAME_FPSR);
static_assert(offsetof(ExceptionFrame, fpcr) == FRAME_FPCR);
static_assert(sizeof(ExceptionFrame) == FRAME_SIZE);
static_assert(mmu::stack_bit == STACK_BIT);

extern "C" {
extern const char exception_vectors[];
extern const char exception_entry[];
extern const char exception_entry_end[];
}

CodeRange exception_entry_range() {
    return {reinterpret_cast<std::uint64_t>(exception_entry),
            reinterpret_cast<std::uint64_t>(exception_entry_end)};
}

void install_vectors() {
    WRITE_SYSREG(vbar_el1, reinterpret_cast<std::uint64_t>(exception_vectors));
    cpu::isb();
}

void set_overflow_stack(std::uint64_t top) {
    WRITE_SYSREG(sp_el0, top);
}

/// Called by vectors.S.
extern "C" void exception_dispatch(ExceptionFrame& frame, Vector vector) {
    switch (vector) {
        case Vector::current_el_spx_irq:
            // The handler may switch to a context that masks nothing but IRQs.
            cpu::serrors_enable();
            handle_irq(frame);
            return;
        case Vector::current_el_spx_sync:
            if (mmu::fix_up_checked_read(frame))
                return;
            break;
        default:
            break;
    }
    handle_unexpected_exception(frame, vector);
}

}  // namespace platform
