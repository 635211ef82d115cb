#include "kernel/vm_map.hpp"

#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernel/heap.hpp"
#include "kernel/page_allocator.hpp"
#include "test/unit/kernel/stop_machine.hpp"

#include "test/unit/kernel/catch2.hpp"

using namespace kcdata;
using namespace kernel;

namespace {

/// Memory for the kernel's page allocator, given to it once.
void have_memory() {
    stop_machine::power_on(1, [] {});
    stop_machine::become(0);
    static std::byte* const memory = [] {
        constexpr std::size_t pages = 256;
        auto* const base =
            static_cast<std::byte*>(std::aligned_alloc(page_size, pages * page_size));
        static std::vector<std::byte> state(PageAllocator::state_size(pages));
        page_allocator().initialize(base, pages, state);
        page_allocator().add({base, pages * page_size});
        return base;
    }();
    REQUIRE(memory != nullptr);
    // The heap keeps a page of the entries' size class.
    heap::free(heap::allocate(64));
}

std::uint64_t allocate(VmMap& map, std::size_t size) {
    const auto address = map.allocate(size);
    REQUIRE(address.ok());
    return address.value();
}

}  // namespace

TEST_CASE("what is copied out is what is copied in, within a mapping and not beyond") {
    have_memory();
    VmMap map;
    const std::uint64_t address = allocate(map, page_size + 1);
    const std::uint64_t end = address + 2 * page_size;
    const std::uint64_t value = 0x0123'4567'89ab'cdef;
    const auto bytes = std::as_bytes(std::span(&value, 1));
    for (const std::uint64_t at : {address, address + page_size - 3, end - 8}) {
        REQUIRE(map.copy_out(bytes, at) == KERN_SUCCESS);
        std::uint64_t found = 0;
        REQUIRE(map.copy_in(at, std::as_writable_bytes(std::span(&found, 1))) == KERN_SUCCESS);
        CHECK(found == value);
    }
    std::uint64_t found = 1;
    const auto into = std::as_writable_bytes(std::span(&found, 1));
    for (const std::uint64_t at :
         {std::uint64_t{0}, address - 1, address - 8, end - 7, end, UINT64_MAX, UINT64_MAX - 7}) {
        CHECK(map.copy_in(at, into) == KERN_INVALID_ADDRESS);
        CHECK(map.copy_out(bytes, at) == KERN_INVALID_ADDRESS);
    }
    CHECK(found == 1);
    CHECK(map.view(end - 8, 8).size() == 8);
    CHECK(map.view(end - 8, 9).empty());
    CHECK(map.view(address, SIZE_MAX).empty());
}

TEST_CASE("memory is zeroed, mappings do not touch, and their place is used again") {
    have_memory();
    VmMap map;
    const std::uint64_t a = allocate(map, 3 * page_size);
    const std::uint64_t b = allocate(map, page_size);
    const std::uint64_t c = allocate(map, 1);
    CHECK(b >= a + 4 * page_size);
    CHECK(c >= b + 2 * page_size);
    for (const std::byte byte : map.view(a, 3 * page_size))
        REQUIRE(byte == std::byte{0});
    REQUIRE(map.deallocate(a) == KERN_SUCCESS);
    CHECK(map.view(a, 1).empty());
    CHECK(map.deallocate(a) == KERN_INVALID_ADDRESS);
    CHECK(map.deallocate(b + page_size) == KERN_INVALID_ADDRESS);
    const std::uint64_t larger = allocate(map, 4 * page_size);
    CHECK(larger > c);
    CHECK(allocate(map, page_size) == a);
    CHECK(map.mappings() == 4);
}

TEST_CASE("pages that are mapped can only be read, and belong to the kernel until adopted") {
    have_memory();
    VmMap map;
    heap::free(heap::allocate(64));
    const std::size_t before = page_allocator().free_pages();
    const auto pages = page_allocator().allocate(2);
    std::memset(pages.data(), 0x5a, pages.size());
    const auto address = map.map(pages);
    REQUIRE(address.ok());
    CHECK(map.copy_out(pages.first(1), address.value()) == KERN_INVALID_ADDRESS);
    CHECK(map.view(address.value(), 2 * page_size).data() == pages.data());
    map.unmap(address.value());
    CHECK(map.mappings() == 0);
    CHECK(page_allocator().free_pages() == before - 2);

    const auto again = map.map(pages);
    REQUIRE(again.ok());
    map.adopt(again.value());
    REQUIRE(map.deallocate(again.value()) == KERN_SUCCESS);
    CHECK(page_allocator().free_pages() == before);
}

TEST_CASE("a map that goes frees what is its own, and nothing else") {
    have_memory();
    const std::size_t before = page_allocator().free_pages();
    const auto pages = page_allocator().allocate(2);
    {
        VmMap map;
        allocate(map, 5 * page_size);
        REQUIRE(map.map(pages).ok());
    }
    CHECK(page_allocator().free_pages() == before - 2);
    page_allocator().free(pages);
}

TEST_CASE("without memory nothing is mapped, and nothing is lost") {
    have_memory();
    VmMap map;
    CHECK(map.allocate(0).error() == KERN_INVALID_ARGUMENT);
    const std::size_t before = page_allocator().free_pages();
    CHECK(map.allocate(1024 * page_size).error() == KERN_RESOURCE_SHORTAGE);
    CHECK(page_allocator().free_pages() == before);
    CHECK(map.mappings() == 0);
    // More than the addresses a map has.
    CHECK(map.allocate(SIZE_MAX).error() == KERN_RESOURCE_SHORTAGE);
}
