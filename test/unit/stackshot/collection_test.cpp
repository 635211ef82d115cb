#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "fake_system.hpp"
#include "parsed.hpp"
#include "stackshot/attempt.hpp"
#include "stackshot/estimate.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

/// The items whose contents depend on when and by whom a collection was made.
bool depends_on_the_collection(const Item& item) {
    return item.type == KCDATA_TYPE_MACH_ABSOLUTE_TIME ||
           item.type == KCDATA_TYPE_USECS_SINCE_EPOCH ||
           item.type == STACKSHOT_KCTYPE_STACKSHOT_DURATION ||
           (item.kind == ItemKind::array && item.element_type == STACKSHOT_KCTYPE_LATENCY_INFO_CPU);
}

/// All bytes of `buffer`, headers and padding included, without those items.
std::vector<std::byte> comparable(std::span<const std::byte> buffer) {
    std::vector<std::byte> bytes;
    const Parsed parsed = parse(buffer);
    REQUIRE(parsed.error == ReadError::none);
    for (const Item& item : parsed.items) {
        if (depends_on_the_collection(item))
            continue;
        ItemHeader header;
        std::memcpy(&header, buffer.data() + item.offset, sizeof(header));
        const auto whole = buffer.subspan(item.offset, sizeof(header) + header.size);
        bytes.insert(bytes.end(), whole.begin(), whole.end());
    }
    return bytes;
}

}  // namespace

TEST_CASE("single-threaded and parallel collections inside one trap are equal") {
    const CpuIndex cpus = GENERATE(1U, 2U, 3U, 4U, 8U);
    const bool single_first = GENERATE(true, false);
    FakeSystem system(cpus, cpus > 2 ? 2 : 1);
    system.add_task("kernel_task", 12, 4);
    for (int n = 0; n < 60; ++n)
        system.add_task("task" + std::to_string(n), static_cast<std::size_t>(n * 5 % 17),
                        static_cast<std::size_t>(1 + n % 40));
    system.absent = cpus == 8 ? 0b1000'0000 : 0;
    {
        const Request request{Request::all_pids,
                              STACKSHOT_KCDATA_FORMAT | STACKSHOT_GET_GLOBAL_MEM_STATS};
        const Estimate estimate =
            estimate_stackshot(system.facts(), system.task_count(), system.thread_count(), request);
        Attempt single(system);
        Attempt parallel(system);
        REQUIRE(single.prepare(request, estimate, 2 * estimate.size, Mode::single_threaded) ==
                KERN_SUCCESS);
        REQUIRE(parallel.prepare(request, estimate, 2 * estimate.size, Mode::parallel) ==
                KERN_SUCCESS);
        Collection* both[] = {&single.collection(), &parallel.collection()};
        if (!single_first)
            std::swap(both[0], both[1]);
        CaptureTrap body(both);
        system.trap(body);
        CHECK(system.traps() == 1);

        auto a = single.assemble({});
        auto b = parallel.assemble({});
        REQUIRE(a.ok());
        REQUIRE(b.ok());
        CHECK(std::popcount(parallel.collection().workers()) ==
              static_cast<int>(cpus == 8 ? 7 : cpus));
        const auto bytes_a = comparable(a->buffer.first(a->size));
        const auto bytes_b = comparable(b->buffer.first(b->size));
        CHECK(bytes_a.size() > 100'000);
        CHECK(bytes_a == bytes_b);
        system.free(a->buffer);
        system.free(b->buffer);
    }
    CHECK(system.live_allocations() == 0);
    CHECK(system.missed_signals() == 0);
}

TEST_CASE("a collection that failed does not touch the one that runs after it") {
    FakeSystem system(3);
    for (int n = 0; n < 20; ++n)
        system.add_task("task" + std::to_string(n), 5, 5);
    const Request request;
    const Estimate estimate =
        estimate_stackshot(system.facts(), system.task_count(), system.thread_count(), request);
    Attempt small(system);
    Attempt large(system);
    // Room for the stack buffers and the queue, but not for all records.
    REQUIRE(small.prepare(request, estimate, 36'000, Mode::parallel) == KERN_SUCCESS);
    REQUIRE(large.prepare(request, estimate, estimate.size, Mode::parallel) == KERN_SUCCESS);
    Collection* const both[] = {&small.collection(), &large.collection()};
    CaptureTrap body(both);
    system.trap(body);
    CHECK(small.assemble({}).error() == KERN_INSUFFICIENT_BUFFER_SIZE);
    auto assembled = large.assemble({});
    REQUIRE(assembled.ok());
    const Parsed parsed = parse(assembled->buffer.first(assembled->size));
    CHECK(parsed.error == ReadError::none);
    CHECK(tasks_of(parsed).size() == 20);
    system.free(assembled->buffer);
    CHECK(system.missed_signals() == 0);
}

TEST_CASE("wherever the arena runs out, the collection ends with an error on all CPUs") {
    const CpuIndex cpus = GENERATE(2U, 4U, 8U);
    FakeSystem system(cpus, 2);
    for (int n = 0; n < 12; ++n)
        system.add_task("task" + std::to_string(n), 4, 6);
    const Request request;
    Estimate estimate =
        estimate_stackshot(system.facts(), system.task_count(), system.thread_count(), request);
    // Small chunks, so that every record of a task can be the one that does not fit.
    estimate.smallest_chunk = 64;
    std::size_t failures = 0;
    std::size_t successes = 0;
    // 0: not even one stack buffer; the largest: enough.
    for (std::size_t size = 0; size <= 8000 * cpus + 60'000; size += 480) {
        Attempt attempt(system);
        REQUIRE(attempt.prepare(request, estimate, size, Mode::parallel) == KERN_SUCCESS);
        Collection* const one[] = {&attempt.collection()};
        CaptureTrap body(one);
        system.trap(body);
        auto assembled = attempt.assemble({});
        if (!assembled.ok()) {
            REQUIRE(assembled.error() == KERN_INSUFFICIENT_BUFFER_SIZE);
            ++failures;
            continue;
        }
        ++successes;
        const Parsed parsed = parse(assembled->buffer.first(assembled->size));
        REQUIRE(parsed.error == ReadError::none);
        REQUIRE(tasks_of(parsed).size() == 12);
        system.free(assembled->buffer);
    }
    CHECK(failures > 10);
    CHECK(successes > 10);
    CHECK(system.live_allocations() == 0);
    CHECK(system.missed_signals() == 0);
}

TEST_CASE("a collection that no trap ran is an error, not an empty capture") {
    FakeSystem system(2);
    Attempt attempt(system);
    const Mode mode = GENERATE(Mode::single_threaded, Mode::parallel);
    REQUIRE(attempt.prepare({}, {}, 100'000, mode) == KERN_SUCCESS);
    CHECK(attempt.assemble({}).error() == KERN_FAILURE);
}
