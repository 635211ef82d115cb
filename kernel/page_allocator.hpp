#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/spinlock.hpp"

namespace kernel {

/// The translation granule: 4 KiB.
inline constexpr std::size_t page_size = 4096;

/// Hands out physical memory by the page, in runs of any length that are contiguous physically and
/// in the linear map. A binary buddy system: free memory is kept as blocks of 2^order pages,
/// aligned to their size; a run that is no power of two gives its tail back, and any page-aligned
/// part of a run may be freed by itself.
///
/// One state byte per page tells what it is, so that a free of what is not allocated is a CHECK and
/// not a corruption. Any context but a stop; free_pages() and total_pages() also inside a stop.
class PageAllocator {
  public:
    /// Bytes of state that initialize() needs for `pages` pages.
    static constexpr std::size_t state_size(std::size_t pages) { return pages; }

    /// Takes charge of `pages` pages from `base` on (page aligned), none of them free yet. `state`:
    /// state_size(pages) bytes that live as long as this.
    void initialize(std::byte* base, std::size_t pages, std::span<std::byte> state);
    /// Makes the whole pages inside `memory` free. Each page at most once.
    void add(std::span<std::byte> memory);

    /// `pages` zeroed pages, or an empty span if no free run is long enough.
    std::span<std::byte> allocate(std::size_t pages);
    /// Frees pages that allocate() returned; any page-aligned part of a run.
    void free(std::span<std::byte> memory);

    /// Pages allocate() could hand out, one by one.
    std::size_t free_pages() const { return free_pages_.load(std::memory_order_relaxed); }
    /// Pages given to add().
    std::size_t total_pages() const { return total_pages_.load(std::memory_order_relaxed); }

  private:
    static constexpr unsigned order_count = 20;  // up to 2 GiB in one block

    struct FreeBlock {
        FreeBlock* next;
        FreeBlock* previous;
    };

    std::size_t index_of(const std::byte* page) const;
    std::byte* page_at(std::size_t index) const { return base_ + index * page_size; }
    void insert(std::size_t index, unsigned order);
    void remove(std::size_t index, unsigned order);
    void free_block(std::size_t index, unsigned order);
    void free_run(std::size_t index, std::size_t pages);

    SpinLock lock_{};
    std::byte* base_ = nullptr;
    std::size_t pages_ = 0;
    std::span<std::byte> state_{};
    std::array<FreeBlock*, order_count> free_lists_{};
    std::atomic<std::size_t> free_pages_{0};
    std::atomic<std::size_t> total_pages_{0};
};

/// The kernel's one PageAllocator.
PageAllocator& page_allocator();

}  // namespace kernel
