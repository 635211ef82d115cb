#include "stackshot/subsystem.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <optional>

#include "fake_map.hpp"
#include "fake_system.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "parsed.hpp"
#include "stackshot/estimate.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

constexpr std::uint64_t buffer_cell = 0x1000;
constexpr std::uint64_t size_cell = 0x2000;
constexpr std::uint64_t untouched = 0xdddd'dddd'dddd'dddd;

/// A subsystem, a system it captures, and a task that asks.
struct Bench {
    explicit Bench(CpuIndex cpus = 2, const AdmissionPolicy& policy = {})
        : system(cpus), subsystem(std::in_place, system, policy), map(std::in_place, system) {
        system.add_task("kernel_task", 5, 4);
        for (int n = 1; n < 6; ++n)
            system.add_task("task" + std::to_string(n), 3, 4);
        reset_cells();
    }

    void reset_cells() {
        for (auto* cell : {&map->memory(buffer_cell, 8), &map->memory(size_cell, 4)})
            std::fill(cell->begin(), cell->end(), std::byte{0xdd});
    }
    static stackshot_config config(std::uint64_t flags, std::int32_t pid = -1) {
        stackshot_config result{};
        result.sc_pid = pid;
        result.sc_flags = flags;
        result.sc_out_buffer_addr = buffer_cell;
        result.sc_out_size_addr = size_cell;
        return result;
    }
    /// A request of the task, with nothing but flags.
    kern_return ask(std::uint64_t flags, std::int32_t pid = -1) {
        const auto c = config(flags, pid);
        return subsystem->snapshot(&*map, 1, std::as_bytes(std::span(&c, 1)));
    }
    /// A request of the kernel.
    kern_return ask_as_kernel(std::uint64_t flags) {
        stackshot_config c{};
        c.sc_pid = -1;
        c.sc_flags = flags;
        return subsystem->snapshot(nullptr, 1, std::as_bytes(std::span(&c, 1)));
    }
    /// What the cells say was published last, read through the map.
    std::span<const std::byte> published() {
        const auto address = map->value<std::uint64_t>(buffer_cell);
        REQUIRE(map->mappings().contains(address));
        return map->mappings().at(address).pages.first(map->value<std::uint32_t>(size_cell));
    }
    void let_go_of_published() { map->deallocate(map->value<std::uint64_t>(buffer_cell)); }
    /// Nothing is allocated, mapped or locked.
    void check_clean() {
        CHECK(system.live_bytes() == 0);
        CHECK(map->mappings().empty());
        CHECK_FALSE(system.locked());
    }

    FakeSystem system;
    std::optional<Subsystem> subsystem;
    std::optional<FakeMap> map;
};

constexpr std::uint64_t plain = STACKSHOT_KCDATA_FORMAT;
constexpr std::uint64_t save = STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_IN_KERNEL_BUFFER;
constexpr std::uint64_t retrieve = STACKSHOT_RETRIEVE_EXISTING_BUFFER;

}  // namespace

TEST_CASE("a task finds its capture in its map, in pages that are its own") {
    Bench bench;
    REQUIRE(bench.ask(plain) == KERN_SUCCESS);
    const auto bytes = bench.published();
    const Parsed parsed = parse(bytes);
    CHECK(parsed.error == ReadError::none);
    CHECK(parsed.end == bytes.size());
    CHECK(tasks_of(parsed).size() == 6);
    CHECK(bench.map->mappings().begin()->second.adopted);
    bench.let_go_of_published();
    bench.check_clean();
}

TEST_CASE("a request that is refused waits for no lock and takes no capture") {
    Bench bench;
    REQUIRE(bench.system.try_lock());  // FakeSystem::lock() throws when it would wait.
    CHECK(bench.ask(plain | STACKSHOT_TRYLOCK) == KERN_NO_ACCESS);
    CHECK(bench.ask(0) == KERN_NOT_SUPPORTED);
    CHECK(bench.ask_as_kernel(plain) == KERN_NOT_SUPPORTED);
    bench.system.unlock();
    CHECK(bench.system.traps() == 0);
}

TEST_CASE("a pid that does not exist is no error, the result has no task") {
    Bench bench;
    REQUIRE(bench.ask(plain, 4711) == KERN_SUCCESS);
    CHECK(tasks_of(parse(bench.published())).empty());
    bench.let_go_of_published();
    bench.check_clean();
}

TEST_CASE("a retained capture is handed over once, and only then may there be another") {
    Bench bench;
    CHECK(bench.ask(retrieve) == KERN_NOT_IN_SET);
    REQUIRE(bench.ask_as_kernel(save) == KERN_SUCCESS);
    CHECK(bench.map->mappings().empty());
    const std::size_t traps = bench.system.traps();
    const std::size_t kept = bench.system.live_bytes();
    CHECK(kept % 4096 == 0);
    CHECK(bench.ask_as_kernel(save) == KERN_MEMORY_PRESENT);
    // Saving wins where both are asked for.
    CHECK(bench.ask_as_kernel(save | retrieve) == KERN_MEMORY_PRESENT);
    CHECK(bench.system.traps() == traps);
    // The unused tail of the buffer was given back.
    CHECK(kept < bench.subsystem->last_capture().buffer_size);

    // Ordinary captures go on meanwhile.
    REQUIRE(bench.ask(plain) == KERN_SUCCESS);
    bench.let_go_of_published();
    CHECK(bench.system.live_bytes() == kept);

    REQUIRE(bench.ask(retrieve) == KERN_SUCCESS);
    CHECK(bench.system.live_bytes() == kept);
    const Parsed parsed = parse(bench.published());
    CHECK(parsed.error == ReadError::none);
    CHECK(described(parsed, "stackshot_in_flags") == save);
    bench.let_go_of_published();
    CHECK(bench.ask(retrieve) == KERN_NOT_IN_SET);
    bench.check_clean();
    CHECK(bench.ask_as_kernel(save) == KERN_SUCCESS);
    bench.subsystem.reset();
    bench.check_clean();
}

TEST_CASE("whichever step of a publication fails, the mapping is gone and what was kept is kept") {
    enum Step { mapping, address, length };
    const Step step = GENERATE(mapping, address, length);
    enum What { fresh, retained, boot_profile };
    const What what = GENERATE(fresh, retained, boot_profile);
    Bench bench;
    if (what == retained)
        REQUIRE(bench.ask_as_kernel(save) == KERN_SUCCESS);
    if (what == boot_profile)
        REQUIRE(bench.subsystem->keep_boot_profile({}) == KERN_SUCCESS);
    const std::size_t kept = bench.system.live_bytes();
    const std::uint64_t flags = what == fresh      ? plain
                                : what == retained ? retrieve
                                                   : plain | STACKSHOT_GET_BOOT_PROFILE;
    for (int turn = 0; turn < 2; ++turn) {
        bench.reset_cells();
        bench.map->failing_map = step == mapping ? 1 : 0;
        bench.map->failing_copy_out = step == mapping ? 0 : step == address ? 1 : 2;
        CHECK(bench.ask(flags) == (step == mapping ? KERN_NO_SPACE : KERN_INVALID_ADDRESS));
        CHECK(bench.map->mappings().empty());
        CHECK(bench.system.live_bytes() == kept);
        CHECK_FALSE(bench.system.locked());
        // The address may have been told before the length could not be.
        CHECK((bench.map->value<std::uint64_t>(buffer_cell) == untouched) == (step != length));
        CHECK(bench.map->value<std::uint32_t>(size_cell) == static_cast<std::uint32_t>(untouched));
    }
    REQUIRE(bench.ask(flags) == KERN_SUCCESS);
    CHECK(parse(bench.published()).error == ReadError::none);
    bench.let_go_of_published();
    CHECK(bench.system.live_bytes() == (what == boot_profile ? kept : 0));
}

TEST_CASE("output addresses that lead nowhere are an error, and nothing stays mapped") {
    Bench bench;
    auto config = Bench::config(plain);
    (GENERATE(true, false) ? config.sc_out_buffer_addr : config.sc_out_size_addr) = 0x666;
    CHECK(bench.subsystem->snapshot(&*bench.map, 1, std::as_bytes(std::span(&config, 1))) ==
          KERN_INVALID_ADDRESS);
    bench.check_clean();
}

TEST_CASE("the boot profile is taken once and can be had any number of times") {
    Bench bench;
    CHECK(bench.ask(plain | STACKSHOT_GET_BOOT_PROFILE) == KERN_NOT_IN_SET);
    REQUIRE(bench.subsystem->keep_boot_profile({}) == KERN_SUCCESS);
    CHECK(bench.subsystem->keep_boot_profile({}) == KERN_MEMORY_PRESENT);
    const std::size_t kept = bench.system.live_bytes();
    const std::size_t traps = bench.system.traps();
    // Still without the format flag no request gets this far.
    CHECK(bench.ask(STACKSHOT_GET_BOOT_PROFILE) == KERN_NOT_SUPPORTED);
    std::vector<std::byte> first;
    for (int turn = 0; turn < 3; ++turn) {
        REQUIRE(bench.ask(plain | STACKSHOT_GET_BOOT_PROFILE) == KERN_SUCCESS);
        const auto bytes = bench.published();
        CHECK(parse(bytes).error == ReadError::none);
        if (turn == 0)
            first.assign(bytes.begin(), bytes.end());
        CHECK(std::ranges::equal(bytes, first));
        bench.let_go_of_published();
        CHECK(bench.system.live_bytes() == kept);
    }
    // It is none of the traps that were asked for.
    CHECK(bench.system.traps() == traps);
    CHECK(bench.ask(retrieve) == KERN_NOT_IN_SET);
    // The kernel has no map it could be published in.
    CHECK(bench.ask_as_kernel(save | STACKSHOT_GET_BOOT_PROFILE) == KERN_INVALID_ADDRESS);
    CHECK(bench.system.live_bytes() == kept);
    bench.system.failing_allocation = 1;
    CHECK(bench.ask(plain | STACKSHOT_GET_BOOT_PROFILE) == KERN_RESOURCE_SHORTAGE);
    CHECK(bench.system.live_bytes() == kept);
    bench.subsystem.reset();
    bench.check_clean();
}

TEST_CASE("a task's request that published nothing is not a success") {
    Bench bench;
    const Request asked{Request::all_pids, plain};
    const Request saved{Request::all_pids, save};
    Publication publication(&*bench.map, buffer_cell, size_cell);
    CHECK(conclude_request(KERN_SUCCESS, asked, publication) == KERN_FAILURE);
    CHECK(conclude_request(KERN_SUCCESS, saved, publication) == KERN_SUCCESS);
    CHECK(conclude_request(KERN_NO_SPACE, asked, publication) == KERN_NO_SPACE);
    const auto pages = bench.system.allocate(4096);
    REQUIRE(publication.publish(pages, 17) == KERN_SUCCESS);
    CHECK(bench.map->value<std::uint32_t>(size_cell) == 17);
    CHECK(conclude_request(KERN_SUCCESS, asked, publication) == KERN_SUCCESS);
    CHECK(conclude_request(KERN_ABORTED, asked, publication) == KERN_ABORTED);
}

TEST_CASE("only the direct entry heeds STACKSHOT_TRYLOCK, and gives up when the lock is held") {
    Bench bench;
    std::vector<std::byte> buffer(1 << 20);
    const Request request{Request::all_pids, plain | STACKSHOT_TRYLOCK};
    REQUIRE(bench.system.try_lock());
    CHECK(bench.subsystem->snapshot_from_kernel(request, buffer).error() == KERN_LOCK_OWNED);
    CHECK(bench.system.locked());
    // FakeSystem::lock() throws where the real one would wait.
    CHECK_THROWS(bench.ask_as_kernel(save | STACKSHOT_TRYLOCK));
    bench.system.unlock();
    CHECK(bench.subsystem->snapshot_from_kernel(request, buffer).ok());
    CHECK_FALSE(bench.system.locked());
}

TEST_CASE("the direct entry fills the caller's buffer, dirty as it was, and nothing else") {
    const bool single = GENERATE(false, true);
    Bench bench;
    bench.system.constant.tunables.single_threaded = single;
    std::vector<std::byte> buffer(1 << 20, std::byte{0xaa});
    auto size = bench.subsystem->snapshot_from_kernel({}, buffer);
    REQUIRE(size.ok());
    const Parsed parsed = parse(std::span(buffer).first(size.value()));
    CHECK(parsed.error == ReadError::none);
    CHECK(parsed.end == size.value());
    CHECK(std::ranges::all_of(std::span(buffer).subspan(size.value()),
                              [](std::byte byte) { return byte == std::byte{0}; }));
    bench.check_clean();

    CHECK(bench.subsystem->snapshot_from_kernel({}, {}).error() == KERN_INVALID_ARGUMENT);
    // No growth: one attempt with what there is.
    const std::size_t traps = bench.system.traps();
    std::vector<std::byte> small(size.value() - 16);
    CHECK(bench.subsystem->snapshot_from_kernel({}, small).error() ==
          KERN_INSUFFICIENT_BUFFER_SIZE);
    CHECK(bench.system.traps() == traps + 1);
    bench.check_clean();
    // Flags are not checked against each other here.
    CHECK(bench.subsystem
              ->snapshot_from_kernel(
                  {Request::all_pids, plain | STACKSHOT_EXCLAVES | STACKSHOT_SKIP_EXCLAVES}, buffer)
              .ok());
}

TEST_CASE("statistics tell of every trap, of failed ones too, and of nothing else") {
    Bench bench;
    CHECK(bench.subsystem->statistics().count == 0);
    REQUIRE(bench.ask(plain) == KERN_SUCCESS);
    bench.let_go_of_published();
    const SubsystemStatistics first = bench.subsystem->statistics();
    CHECK(first.count == 1);
    CHECK(first.last_start < first.last_end);
    CHECK(first.duration == first.last_end - first.last_start);

    bench.system.tasks[2].facts_result = KERN_FAILURE;
    CHECK(bench.ask(plain) == KERN_FAILURE);
    const SubsystemStatistics second = bench.subsystem->statistics();
    CHECK(second.count == 2);
    CHECK(second.last_start > first.last_end);
    CHECK(second.duration == first.duration + second.last_end - second.last_start);
    // The last capture that succeeded is still the first.
    CHECK(bench.subsystem->last_capture().tasks == 6);

    CHECK(bench.ask(retrieve) == KERN_NOT_IN_SET);
    CHECK(bench.ask(0) == KERN_NOT_SUPPORTED);
    CHECK(bench.subsystem->statistics().count == 2);
    bench.check_clean();
}

TEST_CASE("a trap that is under way has a start and no end") {
    Bench bench;
    bool seen = false;
    SubsystemStatistics totals;
    totals.last_end = 5;
    bench.system.trap_hook = [&] {
        seen = true;
        CHECK(totals.last_start > 0);
        CHECK(totals.last_end == 0);
        CHECK(totals.count == 0);
    };
    auto taken = take_stackshot(bench.system, {}, &totals);
    REQUIRE(taken.ok());
    CHECK(seen);
    CHECK(totals.count == 1);
    bench.system.free(taken->buffer);
}

TEST_CASE("each attempt is a trap of its own in the statistics") {
    Bench bench;
    bench.system.constant.tunables.estimate_adj = 0;
    for (auto& thread : bench.system.tasks[0].threads)
        bench.system.make_stack(thread, 900);
    REQUIRE(bench.ask(plain) == KERN_SUCCESS);
    CHECK(bench.subsystem->last_capture().tries > 1);
    CHECK(bench.subsystem->statistics().count == bench.subsystem->last_capture().tries);
}

TEST_CASE(
    "at the maximum a request ends with KERN_RESOURCE_SHORTAGE after a bounded number of "
    "attempts") {
    Bench bench;
    bench.system.constant.tunables.max_tracebuf_size = 100'000;
    for (int n = 0; n < 60; ++n)
        bench.system.add_task("more" + std::to_string(n), 10, 30);
    CHECK(bench.ask(plain) == KERN_RESOURCE_SHORTAGE);
    CHECK(bench.subsystem->statistics().count <= 3);
    bench.check_clean();
}

namespace {

/// Lets `flags` fail at the n-th step of a kind for each n; `arm` sets the n-th step to fail and
/// returns what tells whether it came. The result is how often the request failed.
template <typename Arm>
std::size_t fail_each(Bench& bench, std::uint64_t flags, kern_return wanted, Arm arm) {
    const std::size_t live = bench.system.live_bytes();
    std::size_t failures = 0;
    for (std::size_t n = 1;; ++n) {
        REQUIRE(n < 5000);
        auto& left = arm(n);
        const kern_return got = bench.ask(flags);
        const bool fewer = left != 0;
        left = 0;
        // Words of a stack are all a capture can go on without.
        const bool went_on = got == KERN_SUCCESS && wanted == KERN_FAILURE;
        if (!fewer && !went_on)
            REQUIRE(got == wanted);
        if (got == KERN_SUCCESS) {
            // What is inside a compressed buffer is for other tests.
            if ((flags & STACKSHOT_DO_COMPRESS) == 0)
                REQUIRE(parse(bench.published()).error == ReadError::none);
            bench.let_go_of_published();
        } else {
            ++failures;
        }
        REQUIRE(bench.map->mappings().empty());
        REQUIRE_FALSE(bench.system.locked());
        if (fewer) {
            REQUIRE(got == KERN_SUCCESS);
            return failures;
        }
        REQUIRE(bench.system.live_bytes() == live);
    }
}

}  // namespace

TEST_CASE(
    "whatever fails once, the error is right, nothing is lost, and the next request succeeds") {
    const bool single = GENERATE(false, true);
    const std::uint64_t flags =
        plain | GENERATE(std::uint64_t{0}, STACKSHOT_DO_COMPRESS, STACKSHOT_COLLECT_DELTA_SNAPSHOT);
    Bench bench(2);
    bench.system.constant.tunables.single_threaded = single;
    const std::size_t allocations = fail_each(
        bench, flags, KERN_RESOURCE_SHORTAGE,
        [&](std::size_t n) -> std::size_t& { return bench.system.failing_allocation = n; });
    CHECK(allocations >= 2);
    CHECK(fail_each(bench, flags, KERN_NO_SPACE, [&](std::size_t n) -> std::size_t& {
              return bench.map->failing_map = n;
          }) == 1);
    CHECK(fail_each(bench, flags, KERN_INVALID_ADDRESS, [&](std::size_t n) -> std::size_t& {
              return bench.map->failing_copy_out = n;
          }) == 2);
    const std::size_t reads =
        fail_each(bench, flags, KERN_FAILURE, [&](std::size_t n) -> std::atomic<std::size_t>& {
            bench.system.failing_read = n;
            return bench.system.failing_read;
        });
    // The list's elements and its end, each task with its first thread, each thread with its next.
    // Between many CPUs, which of the reads is the n-th is not the same each time.
    CHECK(reads >= (single ? 7 + 2 * 6 + 2 * 20 : 6 + 20));
    bench.check_clean();
}
