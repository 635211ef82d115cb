// The vector table, and what every exception goes through: the whole interrupted context is saved in
// an ExceptionFrame, exception_dispatch(frame, vector) is called, the context is restored.
//
// Nothing runs at EL0, so TPIDRRO_EL0 is a scratch register and SP_EL0 holds the top of this CPU's
// overflow stack.

#include "platform/arm64/exception/frame_offsets.hpp"

// CFI for register `number` (DWARF for AArch64) saved at `offset` of the frame SP points to: by an
// expression (DW_OP_breg31 offset), for on the overflow stack the frame is not below the CFA.
.macro cfi_saved number, offset
    .cfi_escape 0x10, \number, 3, 0x8f, (\offset & 0x7f) | 0x80, \offset >> 7
.endm
// The interrupted SP is the CFA: DW_CFA_def_cfa_expression (DW_OP_breg31 FRAME_SP; DW_OP_deref).
.macro cfi_cfa_is_saved_sp
    .cfi_escape 0x0f, 4, 0x8f, (FRAME_SP & 0x7f) | 0x80, FRAME_SP >> 7, 0x06
.endm

.macro save_x first, second
    stp     x\first, x\second, [sp, #FRAME_X + 8 * \first]
    cfi_saved \first, FRAME_X + 8 * \first
    cfi_saved \second, FRAME_X + 8 * \second
.endm
.macro restore_x first, second
    ldp     x\first, x\second, [sp, #FRAME_X + 8 * \first]
.endm

// SP moves before anything is stored: the bit says whether the whole frame is still on the stack.
.macro vector name, number
    .balign 128
    .type \name, %function
\name:
    sub     sp, sp, #FRAME_SIZE
    msr     tpidrro_el0, x0
    mov     x0, sp
    tbz     x0, #STACK_BIT, on_stack_overflow
    mrs     x0, tpidrro_el0
    stp     x0, x1, [sp, #FRAME_X]
    add     x0, sp, #FRAME_SIZE
    str     x0, [sp, #FRAME_SP]
    mov     x1, #\number
    b       exception_entry
    .size \name, . - \name
.endm

    .section .text.vectors, "ax", %progbits
    .balign 2048
    .global exception_vectors
exception_vectors:
    .cfi_startproc
    .cfi_undefined x30                  // until there is a frame, nobody can say who was interrupted
    vector current_el_sp0_sync, 0
    vector current_el_sp0_irq, 1
    vector current_el_sp0_fiq, 2
    vector current_el_sp0_serror, 3
    vector current_el_spx_sync, 4
    vector current_el_spx_irq, 5
    vector current_el_spx_fiq, 6
    vector current_el_spx_serror, 7
    vector lower_el_aarch64_sync, 8
    vector lower_el_aarch64_irq, 9
    vector lower_el_aarch64_fiq, 10
    vector lower_el_aarch64_serror, 11
    vector lower_el_aarch32_sync, 12
    vector lower_el_aarch32_irq, 13
    vector lower_el_aarch32_fiq, 14
    vector lower_el_aarch32_serror, 15
    .balign 128

// SP: FRAME_SIZE below the interrupted one, in the guard. x0: the same; the interrupted x0 is in
// TPIDRRO_EL0. Through SP_EL0 the overflow stack is reached without another register.
    .type on_stack_overflow, %function
on_stack_overflow:
    add     x0, x0, #FRAME_SIZE
    msr     spsel, #0
    sub     sp, sp, #FRAME_SIZE
    str     x0, [sp, #FRAME_SP]
    mrs     x0, tpidrro_el0
    stp     x0, x1, [sp, #FRAME_X]
    mov     x0, sp
    add     sp, sp, #FRAME_SIZE
    msr     spsel, #1
    mov     sp, x0
    mov     x1, #16
    b       exception_entry
    .cfi_endproc
    .size on_stack_overflow, . - on_stack_overflow

// SP: the frame, with x0, x1 and sp in it. x1: the Vector.
    .global exception_entry
    .global exception_entry_end
    .type exception_entry, %function
exception_entry:
    .cfi_startproc
    .cfi_signal_frame
    .cfi_return_column 32               // the interrupted PC, apart from x30
    cfi_cfa_is_saved_sp
    cfi_saved 0, FRAME_X
    cfi_saved 1, FRAME_X + 8
    save_x  2, 3
    save_x  4, 5
    save_x  6, 7
    save_x  8, 9
    save_x  10, 11
    save_x  12, 13
    save_x  14, 15
    save_x  16, 17
    save_x  18, 19
    save_x  20, 21
    save_x  22, 23
    save_x  24, 25
    save_x  26, 27
    save_x  28, 29
    str     x30, [sp, #FRAME_X + 8 * 30]
    cfi_saved 30, FRAME_X + 8 * 30

    mrs     x2, elr_el1
    mrs     x3, spsr_el1
    mrs     x4, esr_el1
    mrs     x5, far_el1
    stp     x2, x3, [sp, #FRAME_ELR]
    cfi_saved 32, FRAME_ELR
    stp     x4, x5, [sp, #FRAME_ESR]
    stp     x29, x2, [sp, #FRAME_RECORD]
    add     x29, sp, #FRAME_RECORD

    add     x2, sp, #FRAME_Q
    stp     q0, q1, [x2, #0]
    stp     q2, q3, [x2, #32]
    stp     q4, q5, [x2, #64]
    stp     q6, q7, [x2, #96]
    stp     q8, q9, [x2, #128]
    stp     q10, q11, [x2, #160]
    stp     q12, q13, [x2, #192]
    stp     q14, q15, [x2, #224]
    stp     q16, q17, [x2, #256]
    stp     q18, q19, [x2, #288]
    stp     q20, q21, [x2, #320]
    stp     q22, q23, [x2, #352]
    stp     q24, q25, [x2, #384]
    stp     q26, q27, [x2, #416]
    stp     q28, q29, [x2, #448]
    stp     q30, q31, [x2, #480]
    mrs     x3, fpsr
    mrs     x4, fpcr
    stp     x3, x4, [sp, #FRAME_FPSR]

    mov     x0, sp
    bl      exception_dispatch

    ldp     x3, x4, [sp, #FRAME_FPSR]
    msr     fpsr, x3
    msr     fpcr, x4
    add     x2, sp, #FRAME_Q
    ldp     q0, q1, [x2, #0]
    ldp     q2, q3, [x2, #32]
    ldp     q4, q5, [x2, #64]
    ldp     q6, q7, [x2, #96]
    ldp     q8, q9, [x2, #128]
    ldp     q10, q11, [x2, #160]
    ldp     q12, q13, [x2, #192]
    ldp     q14, q15, [x2, #224]
    ldp     q16, q17, [x2, #256]
    ldp     q18, q19, [x2, #288]
    ldp     q20, q21, [x2, #320]
    ldp     q22, q23, [x2, #352]
    ldp     q24, q25, [x2, #384]
    ldp     q26, q27, [x2, #416]
    ldp     q28, q29, [x2, #448]
    ldp     q30, q31, [x2, #480]
    ldp     x2, x3, [sp, #FRAME_ELR]
    msr     elr_el1, x2
    msr     spsr_el1, x3
    restore_x 2, 3
    restore_x 4, 5
    restore_x 6, 7
    restore_x 8, 9
    restore_x 10, 11
    restore_x 12, 13
    restore_x 14, 15
    restore_x 16, 17
    restore_x 18, 19
    restore_x 20, 21
    restore_x 22, 23
    restore_x 24, 25
    restore_x 26, 27
    restore_x 28, 29
    ldp     x0, x1, [sp, #FRAME_X]
    ldr     x30, [sp, #FRAME_X + 8 * 30]
    // The frame is on the stack it interrupted (an overflow does not return), so SP comes back by itself:
    // frame.sp is not read.
    add     sp, sp, #FRAME_SIZE
    eret
exception_entry_end:
    .cfi_endproc
    .size exception_entry, . - exception_entry
