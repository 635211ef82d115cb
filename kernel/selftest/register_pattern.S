// Layout of RegisterPattern.
#define NZCV 248
#define Q 256
#define FPSR 768
#define FPCR 776

// The frame: record, x19-x28, d8-d15, the arguments, FPCR, and room for what was found.
#define CALLEE_SAVED 16
#define D_SAVED (CALLEE_SAVED + 80)
#define PATTERN (D_SAVED + 64)
#define FOUND (PATTERN + 8)
#define OLD_FPCR (FOUND + 8)
#define SCRATCH (OLD_FPCR + 16)
#define FRAME (SCRATCH + 256)

    .section .text.hold_register_pattern, "ax"
    .global hold_register_pattern
    .type hold_register_pattern, %function
hold_register_pattern:
    .cfi_startproc
    sub sp, sp, #FRAME
    .cfi_def_cfa_offset FRAME
    stp x29, x30, [sp]
    .cfi_offset x29, -FRAME
    .cfi_offset x30, -FRAME + 8
    mov x29, sp
    stp x19, x20, [sp, #CALLEE_SAVED]
    stp x21, x22, [sp, #CALLEE_SAVED + 16]
    stp x23, x24, [sp, #CALLEE_SAVED + 32]
    stp x25, x26, [sp, #CALLEE_SAVED + 48]
    stp x27, x28, [sp, #CALLEE_SAVED + 64]
    stp d8, d9, [sp, #D_SAVED]
    stp d10, d11, [sp, #D_SAVED + 16]
    stp d12, d13, [sp, #D_SAVED + 32]
    stp d14, d15, [sp, #D_SAVED + 48]
    stp x0, x1, [sp, #PATTERN]
    mrs x2, fpcr
    str x2, [sp, #OLD_FPCR]
    // SP itself has no pattern: its copy lies in the frame.
    mov x2, sp
    str x2, [sp, #OLD_FPCR + 8]

    ldr x2, [x0, #FPSR]
    msr fpsr, x2
    ldr x2, [x0, #FPCR]
    msr fpcr, x2
    ldr x2, [x0, #NZCV]
    msr nzcv, x2
    add x2, x0, #Q
    .irp n, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28
    ldr q\n, [x2, #\n * 16]
    .endr
    .irp n, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29
    ldr q\n, [x2, #\n * 16]
    .endr
    ldp q30, q31, [x2, #480]
    ldp x1, x2, [x0, #8]
    ldp x3, x4, [x0, #24]
    ldp x5, x6, [x0, #40]
    ldp x7, x8, [x0, #56]
    ldp x9, x10, [x0, #72]
    ldp x11, x12, [x0, #88]
    ldp x13, x14, [x0, #104]
    ldp x15, x16, [x0, #120]
    ldp x17, x18, [x0, #136]
    ldp x19, x20, [x0, #152]
    ldp x21, x22, [x0, #168]
    ldp x23, x24, [x0, #184]
    ldp x25, x26, [x0, #200]
    ldp x27, x28, [x0, #216]
    ldp x29, x30, [x0, #232]
    ldr x0, [x0]

    // No register is free to count with. Branches, since an emulator takes interrupts between blocks.
    .rept 2048
    nop
    nop
    nop
    b . + 4
    .endr

    stp x0, x1, [sp, #SCRATCH]
    stp x2, x3, [sp, #SCRATCH + 16]
    stp x4, x5, [sp, #SCRATCH + 32]
    stp x6, x7, [sp, #SCRATCH + 48]
    stp x8, x9, [sp, #SCRATCH + 64]
    stp x10, x11, [sp, #SCRATCH + 80]
    stp x12, x13, [sp, #SCRATCH + 96]
    stp x14, x15, [sp, #SCRATCH + 112]
    stp x16, x17, [sp, #SCRATCH + 128]
    stp x18, x19, [sp, #SCRATCH + 144]
    stp x20, x21, [sp, #SCRATCH + 160]
    stp x22, x23, [sp, #SCRATCH + 176]
    stp x24, x25, [sp, #SCRATCH + 192]
    stp x26, x27, [sp, #SCRATCH + 208]
    stp x28, x29, [sp, #SCRATCH + 224]
    mrs x0, nzcv
    stp x30, x0, [sp, #SCRATCH + 240]

    ldr x1, [sp, #FOUND]
    add x2, sp, #SCRATCH
    mov x3, #0
1:  ldr x4, [x2, x3]
    str x4, [x1, x3]
    add x3, x3, #8
    cmp x3, #256
    b.ne 1b
    add x2, x1, #Q
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    str q\n, [x2, #\n * 16]
    .endr
    .irp n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    str q\n, [x2, #\n * 16]
    .endr
    mrs x3, fpsr
    str x3, [x1, #FPSR]
    mrs x3, fpcr
    str x3, [x1, #FPCR]

    ldp x2, x3, [sp, #OLD_FPCR]
    msr fpcr, x2
    mov x4, sp
    sub x0, x4, x3
    ldp d8, d9, [sp, #D_SAVED]
    ldp d10, d11, [sp, #D_SAVED + 16]
    ldp d12, d13, [sp, #D_SAVED + 32]
    ldp d14, d15, [sp, #D_SAVED + 48]
    ldp x19, x20, [sp, #CALLEE_SAVED]
    ldp x21, x22, [sp, #CALLEE_SAVED + 16]
    ldp x23, x24, [sp, #CALLEE_SAVED + 32]
    ldp x25, x26, [sp, #CALLEE_SAVED + 48]
    ldp x27, x28, [sp, #CALLEE_SAVED + 64]
    ldp x29, x30, [sp]
    .cfi_restore x29
    .cfi_restore x30
    add sp, sp, #FRAME
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size hold_register_pattern, . - hold_register_pattern
