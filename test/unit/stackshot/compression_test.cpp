// STACKSHOT_DO_COMPRESS: the same capture, in a compressed buffer.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>
#include <vector>

#include "comparison.hpp"
#include "fake_system.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "parsed.hpp"
#include "stackshot/estimate.hpp"
#include "stackshot/stackshot.hpp"
#include "test/unit/kcdata/inflated.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

constexpr std::uint64_t compressed_flags = STACKSHOT_KCDATA_FORMAT |
                                           STACKSHOT_GET_GLOBAL_MEM_STATS |
                                           STACKSHOT_THREAD_WAITINFO | STACKSHOT_DO_COMPRESS;

std::string name_of(const Item& item) {
    if (item.type == KCDATA_TYPE_UINT32_DESC || item.type == KCDATA_TYPE_UINT64_DESC)
        return reinterpret_cast<const char*>(item.payload.data());
    return std::to_string(item.kind == ItemKind::array ? item.element_type : item.type);
}

}  // namespace

TEST_CASE("a compressed capture holds the items of a plain one, but for the tries") {
    const CpuIndex cpus = GENERATE(1U, 4U);
    const bool single = GENERATE(false, true);
    FakeSystem system(cpus);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(40);
    const auto plain =
        take_stackshot(system, {Request::all_pids, compressed_flags & ~STACKSHOT_DO_COMPRESS});
    const auto compressed = take_stackshot(system, {Request::all_pids, compressed_flags});
    REQUIRE(plain.ok());
    REQUIRE(compressed.ok());
    CHECK(compressed.value().size < plain.value().size / 2);

    const std::vector<std::byte> bytes = inflated(compressed.value().data());
    const Parsed from_plain = parse(plain.value().data());
    const Parsed from_compressed = parse(bytes);
    REQUIRE(from_compressed.error == ReadError::none);
    std::size_t next = 0;
    for (const Item& item : from_plain.items) {
        const std::string name = name_of(item);
        INFO(name << " at " << item.offset);
        if (name == "stackshot_tries")
            continue;
        REQUIRE(next < from_compressed.items.size());
        const Item& other = from_compressed.items[next++];
        CHECK(name_of(other) == name);
        CHECK(other.flags == item.flags);
        if (name == "stackshot_in_flags" || name == "stackshot_out_flags")
            continue;
        CHECK(other.payload.size() == item.payload.size());
        CHECK(std::ranges::equal(item.payload.first(comparable_size(item)),
                                 other.payload.first(comparable_size(other))));
    }
    CHECK(next == from_compressed.items.size());
    CHECK(described(from_compressed, "stackshot_in_flags") == compressed_flags);
    CHECK(described(from_compressed, "stackshot_out_flags") == compressed_flags);

    system.free(plain.value().buffer);
    system.free(compressed.value().buffer);
    CHECK(system.live_allocations() == 0);
}

TEST_CASE("a compressed capture leaves the outer duration 0, and tells the others") {
    FakeSystem system(2);
    system.add_tasks(3);
    const auto taken = take_stackshot(system, {Request::all_pids, compressed_flags});
    REQUIRE(taken.ok());
    const std::vector<std::byte> bytes = inflated(taken.value().data());
    const Parsed parsed = parse(bytes);
    const auto duration =
        payload_as<stackshot_duration_v2>(*find(parsed, STACKSHOT_KCTYPE_STACKSHOT_DURATION));
    CHECK(duration.stackshot_duration > 0);
    CHECK(duration.stackshot_duration_outer == 0);
    system.free(taken.value().buffer);
}

TEST_CASE("a compressed capture allocates all of its memory before the trap") {
    FakeSystem system(4);
    system.add_tasks(20);
    std::size_t in_trap = 0;
    std::size_t peak_before = 0;
    system.trap_hook = [&] {
        in_trap = system.live_bytes();
        peak_before = system.peak_bytes();
    };
    const auto taken = take_stackshot(system, {Request::all_pids, compressed_flags});
    REQUIRE(taken.ok());
    CHECK(system.peak_bytes() == peak_before);
    CHECK(in_trap == peak_before);
    CHECK(taken.value().statistics.peak_memory == peak_before);
    system.free(taken.value().buffer);

    // The collection's memory and the collection itself, the buffer, and zlib's.
    for (std::size_t n = 1; n <= 4; ++n) {
        const std::size_t traps = system.traps();
        system.failing_allocation = n;
        CHECK(take_stackshot(system, {Request::all_pids, compressed_flags}).error() ==
              KERN_RESOURCE_SHORTAGE);
        CHECK(system.traps() == traps);
        CHECK(system.live_allocations() == 0);
    }
}

TEST_CASE("a compressed capture that was too small is started again, and counts its prior time") {
    FakeSystem system(2);
    system.add_tasks(10);
    // More than estimated: they come while the first attempt is prepared.
    system.trap_hook = [&system] {
        if (system.traps() == 1)
            for (int n = 0; n < 100; ++n)
                system.add_task("late" + std::to_string(n), 10, 20);
    };
    const auto taken = take_stackshot(system, {Request::all_pids, compressed_flags});
    REQUIRE(taken.ok());
    CHECK(taken.value().statistics.tries > 1);
    const std::vector<std::byte> bytes = inflated(taken.value().data());
    const Parsed parsed = parse(bytes);
    CHECK(tasks_of(parsed).size() == 110);
    CHECK(payload_as<stackshot_duration_v2>(*find(parsed, STACKSHOT_KCTYPE_STACKSHOT_DURATION))
              .stackshot_duration_prior == taken.value().statistics.prior_time);
    system.free(taken.value().buffer);
    CHECK(system.live_allocations() == 0);
}
