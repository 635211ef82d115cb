#include "stackshot/trace_ring.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <thread>
#include <vector>

using namespace stackshot;

namespace {

std::vector<TraceEntry> entries_of(const TraceRing& ring) {
    std::array<TraceEntry, TraceRing::capacity> entries;
    const std::size_t count = ring.read(entries);
    return {entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

TEST_CASE("a trace holds the last entries, oldest first, as they were written") {
    TraceRing ring;
    CHECK(entries_of(ring).empty());
    constexpr std::size_t count = 3 * TraceRing::capacity + 5;
    for (std::size_t n = 1; n <= count; ++n) {
        ring.add({n, n % 2 == 0 ? TraceEvent::error : TraceEvent::barrier,
                  static_cast<std::uint32_t>(10 * n), "some/file.cpp", 100 * n});
        const auto entries = entries_of(ring);
        REQUIRE(entries.size() == std::min(n, TraceRing::capacity));
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const std::size_t number = n - entries.size() + 1 + i;
            CHECK(entries[i].time == number);
            CHECK(entries[i].event == (number % 2 == 0 ? TraceEvent::error : TraceEvent::barrier));
            CHECK(entries[i].line == 10 * number);
            CHECK(entries[i].file == std::string("some/file.cpp"));
            CHECK(entries[i].word == 100 * number);
        }
    }
}

TEST_CASE("whoever reads a trace while others write it sees whole entries only") {
    TraceRing ring;
    constexpr std::uint64_t writers = 2;
    constexpr std::uint64_t writes = 20'000;
    std::atomic<std::uint64_t> running{writers};
    std::vector<std::thread> threads;
    for (std::uint64_t writer = 0; writer < writers; ++writer) {
        threads.emplace_back([&, writer] {
            for (std::uint64_t n = 1; n <= writes; ++n) {
                const std::uint64_t value = n * writers + writer;
                ring.add({value, TraceEvent::recorded, static_cast<std::uint32_t>(value), "file",
                          value});
            }
            running.fetch_sub(1);
        });
    }
    std::size_t seen = 0;
    while (running.load() != 0) {
        for (const TraceEntry& entry : entries_of(ring)) {
            ++seen;
            REQUIRE(entry.time == entry.word);
            REQUIRE(entry.line == static_cast<std::uint32_t>(entry.word));
        }
        std::this_thread::yield();
    }
    for (std::thread& thread : threads)
        thread.join();
    CHECK(entries_of(ring).size() <= TraceRing::capacity);
    CHECK(entries_of(ring).size() > 0);
}

TEST_CASE("the traces of all CPUs are read while each writes its own") {
    constexpr std::uint64_t cpus = 4;
    constexpr std::uint64_t writes = 5000;
    std::array<TraceRing, cpus> rings;
    std::atomic<std::uint64_t> running{cpus};
    std::vector<std::thread> threads;
    for (std::uint64_t cpu = 0; cpu < cpus; ++cpu) {
        threads.emplace_back([&, cpu] {
            for (std::uint64_t n = 1; n <= writes; ++n)
                rings[cpu].add({n, TraceEvent::recorded, static_cast<std::uint32_t>(cpu), "file",
                                n * cpus + cpu});
            running.fetch_sub(1);
        });
    }
    while (running.load() != 0) {
        for (std::uint64_t cpu = 0; cpu < cpus; ++cpu) {
            std::uint64_t last = 0;
            for (const TraceEntry& entry : entries_of(rings[cpu])) {
                REQUIRE(entry.line == cpu);
                REQUIRE(entry.word == entry.time * cpus + cpu);
                REQUIRE(entry.time > last);
                last = entry.time;
            }
        }
        std::this_thread::yield();
    }
    for (std::thread& thread : threads)
        thread.join();
    for (std::uint64_t cpu = 0; cpu < cpus; ++cpu) {
        const auto entries = entries_of(rings[cpu]);
        REQUIRE(entries.size() == TraceRing::capacity);
        CHECK(entries.front().time == writes - TraceRing::capacity + 1);
        CHECK(entries.back().time == writes);
    }
}

TEST_CASE("every event has a name of its own") {
    std::vector<std::string> names;
    for (int event = 0; event <= static_cast<int>(TraceEvent::error); ++event)
        names.emplace_back(trace_event_name(static_cast<TraceEvent>(event)));
    for (std::size_t n = 0; n < names.size(); ++n) {
        CHECK(names[n] != "unknown");
        CHECK(std::ranges::count(names, names[n]) == 1);
    }
}
