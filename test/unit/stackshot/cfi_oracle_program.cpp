// Never run: compiled for AArch64, for the call frame information it gets.

extern "C" {
int observe(int value);
int leaf(int a, int b) {
    return a * b + 3;
}
int calls(int a) {
    return observe(a) + observe(a + 1);
}
int recursive(int depth) {
    return depth == 0 ? leaf(depth, 1) : recursive(depth - 1) + observe(depth);
}

// Early return before the frame is needed: a shrink-wrapped prologue, state remembered and
// restored.
int early_return(int a, int* p) {
    if (a < 3)
        return a;
    int sum = observe(a);
    for (int n = 0; n < a; ++n)
        sum += observe(p[n]) * p[n];
    return sum;
}

// A frame larger than one instruction can allocate: the CFA moves in steps.
int large_frame(int a) {
    volatile char buffer[70000];
    buffer[a] = 1;
    return observe(buffer[a + 1]);
}

// A frame of unknown size: the CFA is found from x29.
int variable_frame(int a) {
    char* buffer = static_cast<char*>(__builtin_alloca(static_cast<unsigned>(a)));
    buffer[0] = 1;
    return observe(buffer[a - 1]) + observe(a);
}

int many_arguments(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j) {
    return observe(a + b * c - d + e * f - g + h * i + j) + observe(j);
}
int passes_on_stack(int a) {
    return many_arguments(a, 1, 2, 3, 4, 5, 6, 7, a, a + 1) + a;
}

[[noreturn]] void never_returns() {
    for (;;)
        observe(1);
}

int switches(int a) {
    switch (a) {
        case 1:
            return observe(11);
        case 2:
            return observe(12) + observe(a);
        case 3:
            return leaf(a, a);
        case 4:
            return recursive(a);
        default:
            never_returns();
    }
}

int observe(int value) {
    asm volatile("" ::: "memory");
    return value;
}
}

// What compilers rarely emit.
asm(R"(
    .text
    .type by_hand, %function
by_hand:
    .cfi_startproc
    sub sp, sp, #64
    .cfi_adjust_cfa_offset 64
    stp x29, x30, [sp, #16]
    .cfi_rel_offset x29, 16
    .cfi_rel_offset x30, 24
    add x29, sp, #16
    .cfi_def_cfa x29, 48
    .cfi_remember_state
    ldp x29, x30, [sp, #16]
    .cfi_restore x29
    .cfi_restore x30
    add sp, sp, #64
    .cfi_def_cfa sp, 0
    ret
    .cfi_restore_state
    .cfi_remember_state
    .cfi_same_value x29
    .cfi_def_cfa_register sp
    .cfi_def_cfa_offset 80
    nop
    .cfi_restore_state
    .cfi_undefined x30
    nop
    .cfi_escape 0x05, 30, 3
    nop
    .cfi_escape 0x11, 29, 2
    nop
    .cfi_escape 0x12, 29, 0x7c
    nop
    .cfi_escape 0x13, 0x78
    nop
    .cfi_escape 0x06, 30
    .cfi_escape 0x2d
    .cfi_escape 0x00
    nop
    .cfi_escape 0x2e, 0x10
    .fill 100, 4, 0xd503201f
    .cfi_def_cfa_offset 96
    .fill 70, 4, 0xd503201f
    .cfi_def_cfa_offset 112
    .fill 17000, 4, 0xd503201f
    .cfi_def_cfa_offset 128
    nop
    .cfi_endproc
    .size by_hand, . - by_hand

    .type without, %function
without:
    ret
    nop
    .size without, . - without
)");
