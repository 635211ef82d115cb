#include "platform/arm64/devicetree/memory_map.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

using namespace platform;

namespace {

using Ranges = std::vector<MemoryRange>;

MemoryRange range(std::uint64_t base, std::uint64_t end) {
    return {PhysicalAddress(base), end - base};
}

Ranges difference(const Ranges& ranges, const Ranges& holes) {
    Ranges result;
    for_each_difference(ranges, holes, [&](MemoryRange r) { result.push_back(r); });
    return result;
}

}  // namespace

TEST_CASE("Holes are cut out by whole pages") {
    CHECK(difference({range(0x1000, 0x9000)}, {}) == Ranges{range(0x1000, 0x9000)});
    CHECK(difference({range(0x1000, 0x9000)}, {range(0x3800, 0x3801)}) ==
          Ranges{range(0x1000, 0x3000), range(0x4000, 0x9000)});
    CHECK(difference({range(0x1000, 0x9000)}, {range(0x2000, 0x2000)}) ==
          Ranges{range(0x1000, 0x9000)});
    CHECK(difference({range(0x1000, 0x9000)}, {range(0, 0xa000)}).empty());
    CHECK(difference({range(0x1800, 0x3800)}, {}) == Ranges{range(0x2000, 0x3000)});
}

TEST_CASE("Any overlapping, unsorted holes agree with a map of pages") {
    std::mt19937_64 random(3);
    for (int round = 0; round < 2000; ++round) {
        Ranges ranges, holes;
        for (std::uint64_t at = 0; at < 0x4'0000;) {
            const std::uint64_t begin = at + random() % 0x8000, end = begin + random() % 0x1'0000;
            ranges.push_back(range(begin, end));
            at = (end | 0xfff) + 1;
        }
        for (std::uint64_t n = random() % 6; n != 0; --n) {
            const std::uint64_t begin = random() % 0x6'0000;
            holes.push_back(range(begin, begin + random() % 0x6000));
        }
        std::vector<bool> expected(0x80), found(0x80);
        for (std::uint64_t page = 0; page < 0x80; ++page) {
            const std::uint64_t begin = page * 0x1000, end = begin + 0x1000;
            for (const MemoryRange& r : ranges)
                if (r.base.value() <= begin && end <= r.end().value())
                    expected[page] = true;
            for (const MemoryRange& h : holes)
                if (h.size != 0 && h.base.value() < end && begin < h.end().value())
                    expected[page] = false;
        }
        std::uint64_t last = 0;
        for (const MemoryRange& r : difference(ranges, holes)) {
            CHECK(r.size != 0);
            CHECK(r.base.value() >= last);
            last = r.end().value();
            for (std::uint64_t page = r.base.value() / 0x1000; page < last / 0x1000; ++page)
                found[page] = true;
        }
        REQUIRE(found == expected);
    }
}
