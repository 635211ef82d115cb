#pragma once

#include <cstdint>

#include "platform/arm64/types.hpp"

namespace platform::cpu {

/// The affinity of the CPU this runs on.
inline Mpidr current_mpidr() {
    std::uint64_t value;
    asm volatile("mrs %0, mpidr_el1" : "=r"(value));
    return Mpidr(value);
}

/// This CPU's pointer to its per-CPU data (TPIDR_EL1); nullptr until the kernel sets it. With
/// interrupts on, the answer may be another CPU's at once.
inline void* per_cpu_pointer() {
    void* pointer;
    // volatile: a thread that moved to another CPU must not see an old value.
    asm volatile("mrs %0, tpidr_el1" : "=r"(pointer));
    return pointer;
}

inline void set_per_cpu_pointer(void* pointer) {
    asm volatile("msr tpidr_el1, %0" ::"r"(pointer) : "memory");
}

}  // namespace platform::cpu
