// The callee may change x0 to x17 [DEN 0028 2.6], which a C++ caller expects of any function.
.macro call name, instruction
    .global \name
    .type \name, %function
\name:
    .cfi_startproc
    \instruction #0
    ret
    .cfi_endproc
    .size \name, . - \name
.endm

    .text
    call smccc_hvc, hvc
    call smccc_smc, smc
