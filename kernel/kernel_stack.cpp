#include "kernel/kernel_stack.hpp"

#include <algorithm>

#include "kernel/page_allocator.hpp"
#include "kernel/panic.hpp"
#include "kernel/spinlock.hpp"
#include "platform/arm64/mmu/layout.hpp"
#include "platform/arm64/mmu/mmu.hpp"

namespace kernel {
namespace {

namespace mmu = platform::mmu;

static_assert(KernelStack::size == mmu::stack_size);
static_assert(KernelStack::size + KernelStack::guard_size == mmu::stack_slot_size);
static_assert(mmu::vm_base % mmu::stack_slot_size == 0);

/// Stands in the lowest words of a stack nobody uses.
struct FreeStack {
    FreeStack* next;
};

SpinLock lock;
FreeStack* free_stacks = nullptr;
std::uint64_t next_slot = mmu::vm_base;

KernelStack stack_at(std::uint64_t low) {
    return {low, low + KernelStack::size};
}

/// A stack in a slot that was never used.
KernelStack map_new_stack() {
    const auto memory = page_allocator().allocate(KernelStack::size / page_size);
    if (memory.empty())
        return {};
    {
        SpinLockGuard guard(lock);
        const std::uint64_t low = next_slot + KernelStack::guard_size;
        if (next_slot < mmu::vm_end) {
            const auto status =
                mmu::map_pages(low, mmu::from_direct_map(memory.data()), KernelStack::size);
            if (status == mmu::Status::ok) {
                next_slot += mmu::stack_slot_size;
                return stack_at(low);
            }
            CHECK(status == mmu::Status::no_table_page);
        }
    }
    page_allocator().free(memory);
    return {};
}

}  // namespace

KernelStack allocate_kernel_stack() {
    FreeStack* reused = nullptr;
    {
        SpinLockGuard guard(lock);
        reused = free_stacks;
        if (reused != nullptr)
            free_stacks = reused->next;
    }
    const KernelStack stack =
        reused == nullptr ? map_new_stack() : stack_at(reinterpret_cast<std::uint64_t>(reused));
    if (stack.valid())
        std::fill_n(reinterpret_cast<std::uint64_t*>(stack.low),
                    KernelStack::size / sizeof(std::uint64_t), KernelStack::paint);
    return stack;
}

void free_kernel_stack(KernelStack stack) {
    CHECK(stack.valid() && stack.high - stack.low == KernelStack::size);
    auto* const freed = reinterpret_cast<FreeStack*>(stack.low);
    SpinLockGuard guard(lock);
    freed->next = free_stacks;
    free_stacks = freed;
}

std::size_t kernel_stack_pages() {
    SpinLockGuard guard(lock);
    return (next_slot - mmu::vm_base) / mmu::stack_slot_size * (KernelStack::size / page_size);
}

}  // namespace kernel
