#include "kernel/page_allocator.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "test/unit/kernel/host_panic.hpp"
#include "test/unit/kernel/stop_machine.hpp"

#include "test/unit/kernel/catch2.hpp"

using kernel::page_size;

namespace {

struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
};

/// An allocator over `pages` pages of dirty host memory, none of them added yet.
struct Pages {
    explicit Pages(std::size_t page_count)
        : pages(page_count),
          memory(static_cast<std::byte*>(std::aligned_alloc(page_size, page_count * page_size))),
          state(kernel::PageAllocator::state_size(page_count)) {
        stop_machine::power_on(1, [] {});
        stop_machine::become(0);
        std::memset(memory.get(), 0xa5, pages * page_size);
        allocator.initialize(memory.get(), pages, state);
    }
    std::span<std::byte> range(std::size_t first, std::size_t count) {
        return {memory.get() + first * page_size, count * page_size};
    }
    void add_all() { allocator.add(range(0, pages)); }

    std::size_t pages;
    std::unique_ptr<std::byte, FreeMemory> memory;
    std::vector<std::byte> state;
    kernel::PageAllocator allocator{};
};

bool is_zero(std::span<const std::byte> memory) {
    return std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

TEST_CASE("pages are page aligned, zeroed and counted") {
    Pages pages(64);
    pages.add_all();
    CHECK(pages.allocator.total_pages() == 64);
    CHECK(pages.allocator.free_pages() == 64);
    const auto memory = pages.allocator.allocate(3);
    REQUIRE(memory.size() == 3 * page_size);
    CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % page_size == 0);
    CHECK(is_zero(memory));
    CHECK(pages.allocator.free_pages() == 61);
    std::memset(memory.data(), 0xff, memory.size());
    pages.allocator.free(memory);
    CHECK(pages.allocator.free_pages() == 64);
    CHECK(is_zero(pages.allocator.allocate(64)));
}

TEST_CASE("memory that is given back piecemeal joins into one run again") {
    Pages pages(100);
    pages.add_all();
    auto whole = pages.allocator.allocate(64);
    REQUIRE(!whole.empty());
    std::vector<std::size_t> order(64);
    for (std::size_t i = 0; i < order.size(); i++)
        order[i] = i;
    std::shuffle(order.begin(), order.end(), std::minstd_rand(3));
    for (const auto i : order)
        pages.allocator.free(whole.subspan(i * page_size, page_size));
    CHECK(pages.allocator.free_pages() == 100);
    CHECK(pages.allocator.allocate(64).size() == 64 * page_size);
}

TEST_CASE("a page-aligned tail of a run can be freed by itself") {
    Pages pages(256);
    pages.add_all();
    const auto run = pages.allocator.allocate(200);
    REQUIRE(run.size() == 200 * page_size);
    pages.allocator.free(run.subspan(17 * page_size));
    CHECK(pages.allocator.free_pages() == 256 - 17);
    pages.allocator.free(run.first(17 * page_size));
    CHECK(pages.allocator.allocate(256).size() == 256 * page_size);
}

TEST_CASE("holes are never handed out") {
    Pages pages(128);
    pages.allocator.add(pages.range(0, 10));
    pages.allocator.add(pages.range(11, 50));
    // Bytes around whole pages do not count.
    pages.allocator.add(pages.range(100, 4).subspan(1, 2 * page_size));
    CHECK(pages.allocator.total_pages() == 61);
    std::vector<bool> seen(128);
    for (auto page = pages.allocator.allocate(1); !page.empty();
         page = pages.allocator.allocate(1)) {
        const auto index = static_cast<std::size_t>(page.data() - pages.memory.get()) / page_size;
        REQUIRE_FALSE(seen[index]);
        seen[index] = true;
    }
    for (std::size_t i = 0; i < 128; i++)
        REQUIRE(seen[i] == (i < 10 || (i >= 11 && i < 61) || i == 101));
    CHECK(pages.allocator.free_pages() == 0);
}

TEST_CASE("what does not fit is refused and changes nothing") {
    Pages pages(32);
    pages.add_all();
    CHECK(pages.allocator.allocate(0).empty());
    CHECK(pages.allocator.allocate(33).empty());
    CHECK(pages.allocator.allocate(SIZE_MAX / page_size).empty());
    CHECK(pages.allocator.free_pages() == 32);
}

TEST_CASE("random runs never overlap, keep their bytes, and all come back") {
    Pages pages(1000);
    pages.add_all();
    struct Run {
        std::span<std::byte> memory;
        std::byte pattern;
    };
    std::vector<Run> runs;
    std::minstd_rand random(42);
    std::size_t held = 0;
    for (int step = 0; step < 20000; step++) {
        if (random() % 2 == 0) {
            const std::size_t count = 1 + random() % (random() % 8 == 0 ? 200 : 9);
            const auto memory = pages.allocator.allocate(count);
            if (memory.empty())
                continue;
            REQUIRE(memory.size() == count * page_size);
            REQUIRE(is_zero(memory.first(64)));
            const auto pattern = static_cast<std::byte>(1 + step % 255);
            for (std::size_t i = 0; i < count; i++)
                memory[i * page_size] = memory[i * page_size + 100] = pattern;
            runs.push_back({memory, pattern});
            held += count;
        } else if (!runs.empty()) {
            const auto victim = random() % runs.size();
            auto [memory, pattern] = runs[victim];
            const std::size_t count = memory.size() / page_size;
            for (std::size_t i = 0; i < count; i++)
                REQUIRE(
                    (memory[i * page_size] == pattern && memory[i * page_size + 100] == pattern));
            const std::size_t kept = random() % 3 == 0 ? random() % count : 0;
            pages.allocator.free(memory.subspan(kept * page_size));
            held -= count - kept;
            if (kept != 0) {
                runs[victim].memory = memory.first(kept * page_size);
            } else {
                runs[victim] = runs.back();
                runs.pop_back();
            }
        }
        REQUIRE(pages.allocator.free_pages() == 1000 - held);
    }
    for (const auto& run : runs)
        pages.allocator.free(run.memory);
    CHECK(pages.allocator.free_pages() == 1000);
    CHECK(pages.allocator.allocate(512).size() == 512 * page_size);
}

TEST_CASE("freeing what is not allocated panics instead of corrupting") {
    Pages pages(32);
    pages.allocator.add(pages.range(0, 16));
    const auto memory = pages.allocator.allocate(4);
    pages.allocator.free(memory.subspan(page_size, page_size));
    CHECK_THROWS_AS(pages.allocator.free(memory), kernel::Panicked);
    CHECK_THROWS_AS(pages.allocator.free(pages.range(20, 1)), kernel::Panicked);
    CHECK_THROWS_AS(pages.allocator.free(memory.first(page_size + 1)), kernel::Panicked);
    CHECK_THROWS_AS(pages.allocator.add(pages.range(15, 2)), kernel::Panicked);
}

TEST_CASE("CPUs allocate and free at the same time") {
    Pages pages(512);
    pages.add_all();
    stop_machine::power_on(4, [] {});
    std::atomic<bool> intact{true};
    stop_machine::run_cpus(4, [&](kernel::CpuIndex cpu) {
        std::minstd_rand random(cpu + 1);
        for (int i = 0; i < 500; i++) {
            const auto memory = pages.allocator.allocate(1 + random() % 20);
            if (memory.empty())
                continue;
            std::memset(memory.data(), static_cast<int>(cpu), memory.size());
            std::this_thread::yield();
            for (const auto byte : memory)
                if (byte != static_cast<std::byte>(cpu))
                    intact = false;
            pages.allocator.free(memory);
        }
    });
    CHECK(intact);
    CHECK(pages.allocator.free_pages() == 512);
}
