#include "kernel/free_ranges.hpp"

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

using platform::Board;
using platform::PhysicalAddress;
using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

namespace {

Ranges free_ranges(const Ranges& memory, const Ranges& reserved) {
    Board board;
    for (const auto& [base, size] : memory)
        REQUIRE(board.memory.push_back({PhysicalAddress(base), size}));
    for (const auto& [base, size] : reserved)
        REQUIRE(board.reserved.push_back({{PhysicalAddress(base), size}, false}));
    Ranges found;
    kernel::for_each_free_range(board, [&](const platform::MemoryRange& range) {
        found.emplace_back(range.base.value(), range.size);
    });
    return found;
}

}  // namespace

TEST_CASE("memory without reserved ranges is free as it is") {
    CHECK(free_ranges({{100, 50}, {200, 10}}, {}) == Ranges{{100, 50}, {200, 10}});
    CHECK(free_ranges({}, {{1, 2}}).empty());
}

TEST_CASE("reserved ranges are cut out, in any order and overlapping") {
    CHECK(free_ranges({{100, 100}}, {{150, 10}, {120, 5}, {122, 8}, {0, 105}, {195, 100}}) ==
          Ranges{{105, 15}, {130, 20}, {160, 35}});
    CHECK(free_ranges({{100, 100}}, {{100, 100}}).empty());
    CHECK(free_ranges({{100, 100}}, {{0, 1000}}).empty());
    CHECK(free_ranges({{100, 10}, {110, 10}}, {{105, 10}}) == Ranges{{100, 5}, {115, 5}});
    CHECK(free_ranges({{100, 10}}, {{105, 0}}) == Ranges{{100, 10}});
}

TEST_CASE("a byte is in a free range exactly if it is memory and not reserved") {
    std::minstd_rand random(11);
    for (int round = 0; round < 500; round++) {
        std::vector<bool> expected(300), found(300);
        Ranges memory, reserved;
        for (std::uint64_t at = random() % 20; at < 250; at += 1 + random() % 60) {
            const std::uint64_t size = 1 + random() % 40;
            memory.emplace_back(at, size);
            for (std::uint64_t i = at; i < at + size; i++)
                expected[i] = true;
            at += size;
        }
        if (memory.size() > 16)
            continue;
        for (auto count = random() % 10; count != 0; count--) {
            const std::uint64_t base = random() % 280;
            const std::uint64_t size = random() % 20;
            reserved.emplace_back(base, size);
            for (std::uint64_t i = base; i < base + size; i++)
                expected[i] = false;
        }
        for (const auto& [base, size] : free_ranges(memory, reserved))
            for (std::uint64_t i = base; i < base + size; i++) {
                REQUIRE_FALSE(found[i]);
                found[i] = true;
            }
        REQUIRE(found == expected);
    }
}
