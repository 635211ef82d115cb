#include "kernel/heap.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernel/page_allocator.hpp"
#include "kernel/panic.hpp"
#include "kernel/spinlock.hpp"

namespace kernel::heap {
namespace {

/// A piece that is not allocated.
struct FreePiece {
    FreePiece* next;
};

/// Stands at the start of the first page of everything the heap takes from the page allocator. No
/// piece begins on a page boundary, so the header of a piece is at its address rounded down.
struct PageHeader {
    static constexpr std::uint32_t small_magic = 0x6d6c6d73;
    static constexpr std::uint32_t large_magic = 0x6567726c;

    std::uint32_t magic = 0;
    std::uint32_t piece_size = 0;  ///< small pieces only
    std::size_t used = 0;          ///< pieces that are allocated
    std::size_t pages = 1;
    FreePiece* free = nullptr;
    PageHeader* next = nullptr;  ///< in the list of pages of this size with a free piece
    PageHeader* previous = nullptr;
    std::uint64_t unused[2] = {};
};
static_assert(sizeof(PageHeader) == 64);

constexpr std::array<std::uint32_t, 13> piece_sizes = {16,  32,  48,  64,  96,  128, 192,
                                                       256, 336, 448, 576, 800, 1344};
static_assert(piece_sizes.back() * 3 <= page_size - sizeof(PageHeader));

struct SizeClass {
    SpinLock lock{};
    PageHeader* partial = nullptr;
};
constinit std::array<SizeClass, piece_sizes.size()> size_classes{};

std::size_t class_of(std::size_t size) {
    std::size_t index = 0;
    while (piece_sizes[index] < size)
        index++;
    return index;
}

PageHeader* header_of(void* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    return reinterpret_cast<PageHeader*>(address & ~(page_size - 1));
}

void link(SizeClass& size_class, PageHeader* page) {
    page->next = size_class.partial;
    page->previous = nullptr;
    if (page->next != nullptr)
        page->next->previous = page;
    size_class.partial = page;
}

void unlink(SizeClass& size_class, PageHeader* page) {
    (page->previous != nullptr ? page->previous->next : size_class.partial) = page->next;
    if (page->next != nullptr)
        page->next->previous = page->previous;
}

/// A page cut into free pieces, or nullptr.
PageHeader* new_small_page(std::uint32_t piece_size) {
    const auto memory = page_allocator().allocate(1);
    if (memory.empty())
        return nullptr;
    auto* const page = ::new (memory.data())
        PageHeader{.magic = PageHeader::small_magic, .piece_size = piece_size};
    for (std::size_t at = sizeof(PageHeader); at + piece_size <= page_size; at += piece_size)
        page->free = ::new (memory.data() + at) FreePiece{page->free};
    return page;
}

void* allocate_small(std::size_t size) {
    const std::size_t index = class_of(size);
    SizeClass& size_class = size_classes[index];
    void* memory;
    {
        SpinLockGuard guard(size_class.lock);
        PageHeader* page = size_class.partial;
        if (page == nullptr) {
            page = new_small_page(piece_sizes[index]);
            if (page == nullptr)
                return nullptr;
            link(size_class, page);
        }
        memory = page->free;
        page->free = page->free->next;
        page->used++;
        if (page->free == nullptr)
            unlink(size_class, page);
    }
    std::memset(memory, 0, piece_sizes[index]);
    return memory;
}

void* allocate_large(std::size_t size) {
    if (size > SIZE_MAX - sizeof(PageHeader) - page_size)
        return nullptr;
    const std::size_t pages = (size + sizeof(PageHeader) + page_size - 1) / page_size;
    const auto memory = page_allocator().allocate(pages);
    if (memory.empty())
        return nullptr;
    ::new (memory.data()) PageHeader{.magic = PageHeader::large_magic, .pages = pages};
    return memory.data() + sizeof(PageHeader);
}

void free_small(PageHeader* page, void* memory) {
    const auto offset = reinterpret_cast<std::uintptr_t>(memory) -
                        reinterpret_cast<std::uintptr_t>(page) - sizeof(PageHeader);
    CHECK(offset % page->piece_size == 0);
    SizeClass& size_class = size_classes[class_of(page->piece_size)];
    SpinLockGuard guard(size_class.lock);
    CHECK(page->used != 0);
    for (const FreePiece* piece = page->free; piece != nullptr; piece = piece->next)
        CHECK(piece != memory);
    const bool was_full = page->free == nullptr;
    page->free = ::new (memory) FreePiece{page->free};
    page->used--;
    if (was_full)
        link(size_class, page);
    // One empty page a class is kept, so that a lone object does not fetch and return a page each
    // time.
    if (page->used == 0 && (page->next != nullptr || page->previous != nullptr)) {
        unlink(size_class, page);
        page->magic = 0;
        page_allocator().free({reinterpret_cast<std::byte*>(page), page_size});
    }
}

}  // namespace

void* allocate(std::size_t size) {
    return size <= piece_sizes.back() ? allocate_small(size) : allocate_large(size);
}

void free(void* memory) {
    if (memory == nullptr)
        return;
    PageHeader* const page = header_of(memory);
    if (page->magic == PageHeader::small_magic) {
        free_small(page, memory);
        return;
    }
    CHECK(page->magic == PageHeader::large_magic && memory == page + 1);
    page->magic = 0;
    page_allocator().free({reinterpret_cast<std::byte*>(page), page->pages * page_size});
}

}  // namespace kernel::heap
