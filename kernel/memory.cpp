#include "kernel/memory.hpp"

#include "kernel/page_allocator.hpp"
#include "kernel/panic.hpp"
#include "platform/arm64/devicetree/memory_map.hpp"
#include "platform/arm64/mmu/layout.hpp"
#include "platform/arm64/mmu/mmu.hpp"

namespace kernel {
namespace {

using platform::BoundedList;
using platform::MemoryRange;
using platform::PhysicalAddress;

PhysicalAddress round_down(PhysicalAddress address) {
    return PhysicalAddress(address.value() & ~(page_size - 1));
}
PhysicalAddress round_up(PhysicalAddress address) {
    return round_down(address + (page_size - 1));
}

void* table_page() {
    return page_allocator().allocate(1).data();
}

}  // namespace

void initialize_memory(const platform::Board& board) {
    if (board.memory.empty())
        panic("memory: the device tree names no RAM");
    const PhysicalAddress base = round_down(board.memory[0].base);
    const PhysicalAddress end = round_up(board.memory[board.memory.size() - 1].end());
    const std::size_t pages = (end - base) / page_size;
    const std::size_t state_size = PageAllocator::state_size(pages);

    BoundedList<MemoryRange, decltype(board.reserved)::capacity> reserved;
    for (const platform::ReservedRange& range : board.reserved)
        (void)reserved.push_back(range.range);

    // The allocator's own state goes to the start of the first free range that holds it.
    MemoryRange state{};
    for_each_difference(board.memory, reserved, [&](const MemoryRange& range) {
        if (state.size == 0 && range.size >= state_size)
            state = {range.base, state_size};
    });
    if (state.size == 0)
        panic("memory: no free range of %zu bytes", state_size);
    page_allocator().initialize(platform::mmu::to_direct_map(base), pages,
                                {platform::mmu::to_direct_map(state.base), state.size});
    for_each_difference(board.memory, reserved, [&](MemoryRange range) {
        if (range.base == state.base)
            range = {range.base + state_size, range.size - state_size};
        page_allocator().add({platform::mmu::to_direct_map(range.base), range.size});
    });
    platform::mmu::set_table_page_source(table_page);
}

}  // namespace kernel
