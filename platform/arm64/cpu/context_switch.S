// See SwitchContext; context_switch.cpp asserts the offsets.
#include "platform/arm64/cpu/context_offsets.hpp"

    .text
// x0: SwitchContext& from, x1: const SwitchContext& to
    .global switch_context
    .type switch_context, %function
switch_context:
    .cfi_startproc
    mov     x2, sp
    mrs     x3, fpcr
    stp     x19, x20, [x0, #CONTEXT_X19]
    stp     x21, x22, [x0, #CONTEXT_X19 + 16]
    stp     x23, x24, [x0, #CONTEXT_X19 + 32]
    stp     x25, x26, [x0, #CONTEXT_X19 + 48]
    stp     x27, x28, [x0, #CONTEXT_X19 + 64]
    stp     x29, x30, [x0, #CONTEXT_FP]
    stp     x2, x3, [x0, #CONTEXT_SP]
    stp     d8, d9, [x0, #CONTEXT_D8]
    stp     d10, d11, [x0, #CONTEXT_D8 + 16]
    stp     d12, d13, [x0, #CONTEXT_D8 + 32]
    stp     d14, d15, [x0, #CONTEXT_D8 + 48]

    ldp     x19, x20, [x1, #CONTEXT_X19]
    ldp     x21, x22, [x1, #CONTEXT_X19 + 16]
    ldp     x23, x24, [x1, #CONTEXT_X19 + 32]
    ldp     x25, x26, [x1, #CONTEXT_X19 + 48]
    ldp     x27, x28, [x1, #CONTEXT_X19 + 64]
    ldp     x2, x3, [x1, #CONTEXT_SP]
    ldp     d8, d9, [x1, #CONTEXT_D8]
    ldp     d10, d11, [x1, #CONTEXT_D8 + 16]
    ldp     d12, d13, [x1, #CONTEXT_D8 + 32]
    ldp     d14, d15, [x1, #CONTEXT_D8 + 48]
    msr     fpcr, x3
    ldp     x29, x30, [x1, #CONTEXT_FP]
    mov     sp, x2
    ret
    .cfi_endproc
    .size switch_context, . - switch_context

// Where a prepared context begins: x19 is the entry, x20 its argument, FP 0. Nothing called it, so
// the stack of a thread ends here for whoever unwinds it by frame records or by CFI. The context's
// PC is thread_start_resume, behind an instruction as a return address is behind its call.
    .global thread_start
    .global thread_start_resume
    .type thread_start, %function
thread_start:
    .cfi_startproc
    .cfi_undefined x30
    nop
thread_start_resume:
    mov     x0, x20
    blr     x19
    brk     #1
    .cfi_endproc
    .size thread_start, . - thread_start
