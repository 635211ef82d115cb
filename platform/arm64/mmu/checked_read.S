// bool checked_read_word(address, std::uint64_t& value): the one load that may fault. x0: address,
// and on return whether it could be read; x1: where the value goes.
    .section .text.checked_read, "ax", %progbits
    .global checked_read_word
    .global checked_read_load
    .global checked_read_load_end
    .global checked_read_faulted
    .type checked_read_word, %function
checked_read_word:
    .cfi_startproc
checked_read_load:
    ldr     x2, [x0]
checked_read_load_end:
    str     x2, [x1]
    mov     x0, #1
    ret
// The exception handler returns here instead of to the load.
checked_read_faulted:
    mov     x0, #0
    ret
    .cfi_endproc
    .size checked_read_word, . - checked_read_word
