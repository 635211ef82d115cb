#pragma once

namespace platform::cpu {

/// Waits for an event or an interrupt; may return early.
inline void wfe() {
    asm volatile("wfe" ::: "memory");
}
/// Sends an event to every CPU. The caller orders its stores before it (dsb_ishst).
inline void sev() {
    asm volatile("sev" ::: "memory");
}
/// Waits for an interrupt, masked or not; may return early. What this CPU did to memory is done
/// before it goes to rest.
inline void wfi() {
    asm volatile("dsb sy\n\twfi" ::: "memory");
}
inline void yield() {
    asm volatile("yield" ::: "memory");
}
/// Stops this CPU for good.
[[noreturn]] inline void halt() {
    asm volatile("msr daifset, #0xf" ::: "memory");
    for (;;)
        asm volatile("wfi" ::: "memory");
}

}  // namespace platform::cpu
