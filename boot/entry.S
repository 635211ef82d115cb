// From the boot loader or firmware to C++, for the first CPU and for the secondaries: EL2 -> EL1, MMU on,
// on to the address we are linked at. Until then we run where we were loaded, with the MMU and data cache
// off; x0 to x18 are scratch.

#include "platform/arm64/cpu/secondary_offsets.hpp"

.macro address register, symbol
    adrp    \register, \symbol
    add     \register, \register, :lo12:\symbol
.endm
// The stack, masked exceptions, and an end for whoever walks frame records.
.macro begin_stack register
    mov     sp, \register
    mov     x29, xzr
    mov     x30, xzr
.endm

// To where they are still mapped when we have left the identity map.
.macro move_early_vectors
    ldr     x0, =early_vectors
    msr     vbar_el1, x0
    isb
.endm

device_tree .req x19
index       .req x19
entry_el    .req x20
start       .req x21

    .section .head, "ax", %progbits
    .global turn_mmu_on
// x0: SCTLR_EL1, x1: where to go on. This page is mapped at its own address too.
    .type turn_mmu_on, %function
turn_mmu_on:
    .cfi_startproc
    .cfi_undefined x30
    msr     sctlr_el1, x0
    isb
    br      x1
    .cfi_endproc
    .size turn_mmu_on, . - turn_mmu_on

    .section .text.entry, "ax", %progbits
    .global primary_entry
    .global secondary_entry

// x0: the device tree.
    .type primary_entry, %function
primary_entry:
    .cfi_startproc
    .cfi_undefined x30
    msr     daifset, #0xf
    msr     spsel, #1
    mov     device_tree, x0
    // Cache lines the loader left over memory we write next, past the caches, must not be written back
    // over it later.
    address x0, noinit_start
    address x1, image_end
    mrs     x2, ctr_el0
    ubfx    x2, x2, #16, #4                 // CTR_EL0.DminLine: log2 of words
    mov     x3, #4
    lsl     x3, x3, x2
.Lnext_line:
    dc      civac, x0
    add     x0, x0, x3
    cmp     x0, x1
    b.lo    .Lnext_line
    dsb     sy
    address x0, boot_stack_top
    begin_stack x0
    bl      enter_el1
    mov     entry_el, x0
    bl      build_early_tables
    bl      prepare_translation
    ldr     x1, =primary_high
    b       turn_mmu_on
primary_high:
    move_early_vectors
    ldr     x0, =boot_stack_top
    begin_stack x0
    mov     x0, device_tree
    mov     x1, entry_el
    bl      boot_main
    .cfi_endproc
    .size primary_entry, . - primary_entry

// Finds what start_secondary() left for this CPU by its affinity, since a spin table passes nothing on.
    .type secondary_entry, %function
secondary_entry:
    .cfi_startproc
    .cfi_undefined x30
    msr     daifset, #0xf
    msr     spsel, #1
    mrs     x0, mpidr_el1
    bfi     x0, xzr, #24, #7                // not affinity: U, RES0, MT
    orr     x0, x0, #1 << SECONDARY_KEY_BIT // secondary_key()
    address x1, secondary_mpidrs
    mov     index, xzr
.Lnext_cpu:
    ldr     x2, [x1, index, lsl #3]
    cmp     x2, x0
    b.eq    .Lfound
    add     index, index, #1
    cmp     index, #SECONDARY_COUNT
    b.lo    .Lnext_cpu
.Lnobody_asked_for_us:
    wfi
    b       .Lnobody_asked_for_us
.Lfound:
    address x0, secondary_early_stacks + (1 << EARLY_STACK_LOG2_SIZE)
    add     x0, x0, index, lsl #EARLY_STACK_LOG2_SIZE
    begin_stack x0
    bl      enter_el1
    bl      prepare_translation
    ldr     x1, =secondary_high
    b       turn_mmu_on
secondary_high:
    move_early_vectors
    ldr     start, =secondary_starts
    mov     x1, #SECONDARY_START_SIZE
    madd    start, index, x1, start
    ldr     x0, [start, #SECONDARY_START_STACK_TOP]
    begin_stack x0
    mov     x0, start
    bl      boot_secondary
    .cfi_endproc
    .size secondary_entry, . - secondary_entry

// An exception before machine::adopt_cpu() can be told to nobody: the CPU stays where a debugger finds it.
    .balign 2048
    .global early_vectors
early_vectors:
    .rept 16
    .balign 128
    b       .
    .endr
    .balign 128
