#pragma once

// Barriers by their instruction and shareability domain [DDI 0487 B2.6.12]. Each use says what it
// orders.
namespace platform::cpu {

inline void isb() {
    asm volatile("isb" ::: "memory");
}
inline void dsb_sy() {
    asm volatile("dsb sy" ::: "memory");
}
inline void dsb_ish() {
    asm volatile("dsb ish" ::: "memory");
}
inline void dsb_ishst() {
    asm volatile("dsb ishst" ::: "memory");
}
inline void dsb_nsh() {
    asm volatile("dsb nsh" ::: "memory");
}

}  // namespace platform::cpu
