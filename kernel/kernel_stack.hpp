#pragma once

#include <cstddef>
#include <cstdint>

namespace kernel {

/// A kernel stack: 16 KiB that are mapped, [low, high), above 16 KiB that are not, so that an
/// overflow faults at once.
struct KernelStack {
    static constexpr std::size_t size = 16 * 1024;
    static constexpr std::size_t guard_size = 16 * 1024;
    /// What a stack is full of before it is used: how far it ever was shows.
    static constexpr std::uint64_t paint = 0x5ac3'96e1'5ac3'96e1;

    std::uint64_t low = 0;
    std::uint64_t high = 0;

    bool valid() const { return low != 0; }
};

/// A painted stack; not valid() if there is no memory. Thread context, interrupts on or off.
KernelStack allocate_kernel_stack();
/// Gives back a stack nothing runs on any more. It stays mapped and is used again first: memory in
/// stacks is bounded by the most threads there ever were, and no TLB entry is ever invalidated.
void free_kernel_stack(KernelStack stack);
/// Pages of all stacks there are, also of those that nothing uses. Any context.
std::size_t kernel_stack_pages();

}  // namespace kernel
