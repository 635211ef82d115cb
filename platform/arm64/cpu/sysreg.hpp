#pragma once

#include <cstdint>

// System registers by name, or by S<op0>_<op1>_<Cn>_<Cm>_<op2> where the assembler may not know it.
// A write takes effect for later instructions after an ISB, which is the caller's to place.

#define READ_SYSREG(name)                                    \
    [] {                                                     \
        std::uint64_t sysreg_value;                          \
        asm volatile("mrs %0, " #name : "=r"(sysreg_value)); \
        return sysreg_value;                                 \
    }()

#define WRITE_SYSREG(name, value) \
    asm volatile("msr " #name ", %0" ::"r"(static_cast<std::uint64_t>(value)) : "memory")
