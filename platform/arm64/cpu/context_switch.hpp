#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace platform {

/// What a context that is not running keeps: the registers a called function must preserve
/// [AAPCS64 6.1]. Everything else its call of switch_context() gave up, or its ExceptionFrame
/// holds.
struct alignas(16) SwitchContext {
    std::array<std::uint64_t, 10> x19_to_x28{};
    std::uint64_t fp = 0;  ///< x29
    std::uint64_t lr = 0;  ///< x30: where it goes on
    std::uint64_t sp = 0;
    std::uint64_t fpcr = 0;
    std::array<std::uint64_t, 8> d8_to_d15{};
};

/// Saves the calling context in `from` and goes on in `to`; returns when someone switches to `from`
/// again. Interrupts off. What `from` wrote before is visible to the CPU that switches to it only
/// if the two synchronize (the run queue's lock).
extern "C" void switch_context(SwitchContext& from, const SwitchContext& to);

/// Makes `context` one that, switched to, calls entry(argument) on the stack below `stack_top`
/// (16-byte aligned) with interrupts as they are at that time (off) and FP = 0. `entry` must not
/// return.
void prepare_context(SwitchContext& context, std::uint64_t stack_top, void (*entry)(void*),
                     void* argument);

}  // namespace platform
