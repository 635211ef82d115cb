#include "kernel/heap.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernel/page_allocator.hpp"
#include "test/unit/kernel/host_panic.hpp"
#include "test/unit/kernel/stop_machine.hpp"

#include "test/unit/kernel/catch2.hpp"

namespace heap = kernel::heap;

namespace {

constexpr std::size_t heap_pages = 4096;

/// The kernel's heap over host memory; the same for all test cases, as in the kernel.
void start_heap() {
    static bool started = false;
    stop_machine::power_on(1, [] {});
    stop_machine::become(0);
    if (started)
        return;
    started = true;
    static std::vector<std::byte> state(kernel::PageAllocator::state_size(heap_pages));
    auto* const memory = static_cast<std::byte*>(
        std::aligned_alloc(kernel::page_size, heap_pages * kernel::page_size));
    std::memset(memory, 0xa5, heap_pages * kernel::page_size);
    kernel::page_allocator().initialize(memory, heap_pages, state);
    kernel::page_allocator().add({memory, heap_pages * kernel::page_size});
}

bool is_filled(const std::byte* memory, std::size_t size, std::byte value) {
    return std::all_of(memory, memory + size, [=](std::byte b) { return b == value; });
}

}  // namespace

TEST_CASE("every size is aligned to 16, zeroed and keeps its bytes") {
    start_heap();
    std::vector<std::byte*> pieces;
    std::vector<std::size_t> sizes;
    for (std::size_t size = 0; size < 6000; size += 1 + size / 16)
        sizes.push_back(size);
    for (std::size_t i = 0; i < sizes.size(); i++) {
        auto* const piece = static_cast<std::byte*>(heap::allocate(sizes[i]));
        REQUIRE(piece != nullptr);
        REQUIRE(reinterpret_cast<std::uintptr_t>(piece) % 16 == 0);
        REQUIRE(is_filled(piece, sizes[i], std::byte{0}));
        std::memset(piece, static_cast<int>(i % 251), sizes[i]);
        pieces.push_back(piece);
    }
    for (std::size_t i = 0; i < sizes.size(); i++) {
        REQUIRE(is_filled(pieces[i], sizes[i], static_cast<std::byte>(i % 251)));
        heap::free(pieces[i]);
    }
    heap::free(nullptr);
}

TEST_CASE("memory comes back: a thousand rounds cost no more pages than one") {
    start_heap();
    std::minstd_rand random(7);
    std::vector<void*> pieces;
    const auto round = [&] {
        for (int i = 0; i < 200; i++)
            pieces.push_back(heap::allocate(random() % 3000));
        std::shuffle(pieces.begin(), pieces.end(), random);
        for (void* const piece : pieces)
            heap::free(piece);
        pieces.clear();
    };
    round();
    const auto free_pages = kernel::page_allocator().free_pages();
    for (int i = 0; i < 1000; i++)
        round();
    // At most one empty page a size class is kept.
    CHECK(kernel::page_allocator().free_pages() + 13 >= free_pages);
    CHECK(kernel::page_allocator().free_pages() >= heap_pages - 13);
}

TEST_CASE("an exhausted heap answers nullptr and works again after a free") {
    start_heap();
    CHECK(heap::allocate(SIZE_MAX) == nullptr);
    CHECK(heap::allocate(heap_pages * kernel::page_size) == nullptr);
    std::vector<void*> pieces;
    for (void* piece = heap::allocate(100'000); piece != nullptr; piece = heap::allocate(100'000))
        pieces.push_back(piece);
    while (void* const piece = heap::allocate(1000))
        pieces.push_back(piece);
    CHECK(heap::allocate(1000) == nullptr);
    heap::free(pieces.back());
    pieces.pop_back();
    void* const again = heap::allocate(1000);
    CHECK(again != nullptr);
    heap::free(again);
    for (void* const piece : pieces)
        heap::free(piece);
    CHECK(kernel::page_allocator().free_pages() >= heap_pages - 13);
}

TEST_CASE("freeing twice or freeing the middle of a piece panics") {
    start_heap();
    auto* const small = static_cast<std::byte*>(heap::allocate(64));
    auto* const other = heap::allocate(64);
    CHECK_THROWS_AS(heap::free(small + 16), kernel::Panicked);
    heap::free(small);
    CHECK_THROWS_AS(heap::free(small), kernel::Panicked);
    heap::free(other);
    auto* const large = static_cast<std::byte*>(heap::allocate(5000));
    CHECK_THROWS_AS(heap::free(large + 64), kernel::Panicked);
    heap::free(large);
    CHECK_THROWS_AS(heap::free(large), kernel::Panicked);
}

TEST_CASE("objects are constructed and destroyed") {
    start_heap();
    static int alive = 0;
    struct Counted {
        explicit Counted(int v) : value(v) { alive++; }
        ~Counted() { alive--; }
        int value;
    };
    auto* const object = heap::create<Counted>(5);
    REQUIRE(object != nullptr);
    CHECK(object->value == 5);
    CHECK(alive == 1);
    heap::destroy(object);
    CHECK(alive == 0);
    heap::destroy<Counted>(nullptr);
}
