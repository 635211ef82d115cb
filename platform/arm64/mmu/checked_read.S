// `load`, an instruction that may fault, and its entry in the table fix_up_checked_read() searches:
// two offsets, each from its own place, of the load and of where control goes if it faults.
// CHECKED_LOAD() in checked_read.hpp is the same.
.macro checked_load faulted, load:vararg
700:    \load
    .pushsection .checked_reads, "a", %progbits
    .balign 4
    .word   700b - .
    .word   \faulted - .
    .popsection
.endm

// bool checked_copy_words(const void* from, void* to, std::size_t words): x0 from, x1 to, x2 words.
// Only the loads may fault; each then ends in checked_copy_faulted.
    .section .text.checked_read, "ax", %progbits
    .global checked_copy_words
    .type checked_copy_words, %function
checked_copy_words:
    .cfi_startproc
    subs    x2, x2, #8
    b.lo    2f
1:  checked_load checked_copy_faulted, ldp x3, x4, [x0]
    checked_load checked_copy_faulted, ldp x5, x6, [x0, #16]
    checked_load checked_copy_faulted, ldp x7, x8, [x0, #32]
    checked_load checked_copy_faulted, ldp x9, x10, [x0, #48]
    add     x0, x0, #64
    stp     x3, x4, [x1]
    stp     x5, x6, [x1, #16]
    stp     x7, x8, [x1, #32]
    stp     x9, x10, [x1, #48]
    add     x1, x1, #64
    subs    x2, x2, #8
    b.hs    1b
    // x2 is 8 below the number of words left.
2:  adds    x2, x2, #8 - 2
    b.mi    4f
3:  checked_load checked_copy_faulted, ldp x3, x4, [x0]
    add     x0, x0, #16
    stp     x3, x4, [x1], #16
    subs    x2, x2, #2
    b.pl    3b
    // Odd: 1 below a multiple of 2.
4:  tbz     x2, #0, 5f
    checked_load checked_copy_faulted, ldr x3, [x0]
    str     x3, [x1]
5:  mov     x0, #1
    ret
checked_copy_faulted:
    mov     x0, #0
    ret
    .cfi_endproc
    .size checked_copy_words, . - checked_copy_words
