#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <span>
#include <string>

#include "stackshot/trace_ring.hpp"
#include "test/unit/stackshot/model/scheduler.hpp"

// A ring whose writers interrupt each other at every access, and a reader at the same time.

using namespace stackshot;

namespace {

constexpr unsigned writers = 2;
constexpr std::uint64_t writes = TraceRing::capacity + 4;  // one overtakes the other by a round

/// The entry a writer adds as its n-th; every word of it names it.
TraceEntry entry_of(unsigned writer, std::uint64_t n) {
    static const std::array<const char*, writers> files = {"one.cpp", "other.cpp"};
    const std::uint64_t value = n * writers + writer;
    return {value, TraceEvent::recorded, static_cast<std::uint32_t>(value), files[writer], value};
}

/// Fails the schedule unless every entry is one that was added, and each writer's are in order.
void look(const TraceRing& ring) {
    std::array<TraceEntry, TraceRing::capacity> entries;
    const std::size_t count = ring.read(entries);
    std::array<std::uint64_t, writers> last{};
    for (const TraceEntry& entry : std::span(entries).first(count)) {
        const auto writer = static_cast<unsigned>(entry.word % writers);
        const TraceEntry whole = entry_of(writer, entry.word / writers);
        if (entry.time != whole.time || entry.line != whole.line || entry.file != whole.file ||
            entry.event != whole.event)
            model::Scheduler::active()->fail("a torn entry");
        if (entry.word <= last[writer])
            model::Scheduler::active()->fail("an entry out of order");
        last[writer] = entry.word;
    }
}

}  // namespace

TEST_CASE(
    "in no schedule is an entry read that was not written whole, not by one overtaken either") {
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
        INFO("seed " << seed);
        TraceRing ring;
        model::Scheduler scheduler(seed, writers + 1);
        const std::string failure = scheduler.run([&](unsigned cpu) {
            if (cpu == writers) {
                for (int looks = 0; looks < 3; ++looks)
                    look(ring);
            } else {
                for (std::uint64_t n = 1; n <= writes; ++n)
                    ring.add(entry_of(cpu, n));
            }
        });
        REQUIRE(failure == "");
        // Few are lost to one that was overtaken.
        std::array<TraceEntry, TraceRing::capacity> entries;
        REQUIRE(ring.read(entries) >= TraceRing::capacity / 2);
    }
}
