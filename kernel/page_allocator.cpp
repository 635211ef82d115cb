#include "kernel/page_allocator.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernel/panic.hpp"

namespace kernel {
namespace {

constinit PageAllocator the_page_allocator;

/// States of a page. A free block's first page holds free_block + its order.
constexpr std::byte not_ours{0x00};  // a hole, or reserved
constexpr std::byte allocated{0x01};
constexpr std::byte free_rest{0x02};  // in a free block, not its first page
constexpr unsigned free_block_base = 0x40;

constexpr std::byte free_block_of(unsigned order) {
    return static_cast<std::byte>(free_block_base + order);
}

constexpr std::size_t pages_of(unsigned order) {
    return std::size_t{1} << order;
}

/// The largest order of a block that may begin at page `index` and has at most `pages` pages.
unsigned largest_order(std::size_t index, std::size_t pages, unsigned limit) {
    const auto by_alignment = index == 0 ? limit : static_cast<unsigned>(std::countr_zero(index));
    const auto by_length = static_cast<unsigned>(std::bit_width(pages)) - 1;
    return std::min({by_alignment, by_length, limit});
}

}  // namespace

PageAllocator& page_allocator() {
    return the_page_allocator;
}

void PageAllocator::initialize(std::byte* base, std::size_t pages, std::span<std::byte> state) {
    CHECK(reinterpret_cast<std::uintptr_t>(base) % page_size == 0);
    CHECK(state.size() >= state_size(pages));
    base_ = base;
    pages_ = pages;
    state_ = state.first(pages);
    std::memset(state_.data(), static_cast<int>(not_ours), state_.size());
}

void PageAllocator::add(std::span<std::byte> memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    const std::size_t skipped = (page_size - address % page_size) % page_size;
    if (memory.size() < skipped + page_size)
        return;
    const std::size_t first = index_of(memory.data() + skipped);
    const std::size_t count = (memory.size() - skipped) / page_size;
    CHECK(count <= pages_ - first);
    SpinLockGuard guard(lock_);
    for (std::size_t i = first; i < first + count; i++) {
        CHECK(state_[i] == not_ours);
        state_[i] = allocated;
    }
    total_pages_.fetch_add(count, std::memory_order_relaxed);
    free_run(first, count);
}

std::span<std::byte> PageAllocator::allocate(std::size_t pages) {
    if (pages == 0 || pages > pages_of(order_count - 1))
        return {};
    const auto wanted = static_cast<unsigned>(std::bit_width(pages - 1));
    std::span<std::byte> memory;
    {
        SpinLockGuard guard(lock_);
        unsigned order = wanted;
        while (order < order_count && free_lists_[order] == nullptr)
            order++;
        if (order == order_count)
            return {};
        const std::size_t index = index_of(reinterpret_cast<const std::byte*>(free_lists_[order]));
        remove(index, order);
        std::memset(&state_[index], static_cast<int>(allocated), pages_of(order));
        free_run(index + pages, pages_of(order) - pages);
        memory = {page_at(index), pages * page_size};
    }
    std::memset(memory.data(), 0, memory.size());
    return memory;
}

void PageAllocator::free(std::span<std::byte> memory) {
    if (memory.empty())
        return;
    CHECK(memory.size() % page_size == 0);
    const std::size_t first = index_of(memory.data());
    const std::size_t count = memory.size() / page_size;
    CHECK(count <= pages_ - first);
    SpinLockGuard guard(lock_);
    for (std::size_t i = first; i < first + count; i++)
        CHECK(state_[i] == allocated);
    free_run(first, count);
}

std::size_t PageAllocator::index_of(const std::byte* page) const {
    const auto offset =
        reinterpret_cast<std::uintptr_t>(page) - reinterpret_cast<std::uintptr_t>(base_);
    CHECK(offset % page_size == 0 && offset / page_size < pages_);
    return offset / page_size;
}

void PageAllocator::insert(std::size_t index, unsigned order) {
    state_[index] = free_block_of(order);
    auto* const block = reinterpret_cast<FreeBlock*>(page_at(index));
    FreeBlock*& head = free_lists_[order];
    *block = {head, nullptr};
    if (head != nullptr)
        head->previous = block;
    head = block;
    free_pages_.fetch_add(pages_of(order), std::memory_order_relaxed);
}

void PageAllocator::remove(std::size_t index, unsigned order) {
    const auto* const block = reinterpret_cast<const FreeBlock*>(page_at(index));
    (block->previous != nullptr ? block->previous->next : free_lists_[order]) = block->next;
    if (block->next != nullptr)
        block->next->previous = block->previous;
    state_[index] = free_rest;
    free_pages_.fetch_sub(pages_of(order), std::memory_order_relaxed);
}

/// Makes a block free, joined with its buddy as often as that is free too.
void PageAllocator::free_block(std::size_t index, unsigned order) {
    std::memset(&state_[index], static_cast<int>(free_rest), pages_of(order));
    while (order + 1 < order_count) {
        const std::size_t buddy = index ^ pages_of(order);
        if (buddy >= pages_ || state_[buddy] != free_block_of(order))
            break;
        remove(buddy, order);
        index &= ~pages_of(order);
        order++;
    }
    insert(index, order);
}

void PageAllocator::free_run(std::size_t index, std::size_t pages) {
    while (pages != 0) {
        const unsigned order = largest_order(index, pages, order_count - 1);
        free_block(index, order);
        index += pages_of(order);
        pages -= pages_of(order);
    }
}

}  // namespace kernel
