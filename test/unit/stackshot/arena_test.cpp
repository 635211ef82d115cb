#include "stackshot/arena.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "fake_system.hpp"

using namespace stackshot;

namespace {

/// 64-byte aligned memory for an arena.
struct Memory {
    explicit Memory(std::size_t size)
        : bytes(static_cast<std::byte*>(std::aligned_alloc(64, (size + 63) / 64 * 64)), &std::free),
          span(bytes.get(), size) {
        std::memset(bytes.get(), 0xaa, size);
    }
    std::unique_ptr<std::byte, decltype(&std::free)> bytes;
    std::span<std::byte> span;
};

/// Takes all there is in pieces of `size`.
std::vector<std::span<std::byte>> take_all(Arena& arena, std::uint32_t cluster, std::size_t size) {
    std::vector<std::span<std::byte>> pieces;
    for (;;) {
        const auto piece = arena.allocate(cluster, size);
        if (piece.empty())
            return pieces;
        pieces.push_back(piece);
    }
}

}  // namespace

/// A collection that nobody panics in.
const CaptureState running;

TEST_CASE("one cluster gets the whole memory, down to the last granule") {
    FakeSystem system(1);
    Memory memory(16 * 100);
    Arena arena;
    const std::uint32_t cpus[] = {4};
    arena.reset(system, running, memory.span, cpus);
    const auto pieces = take_all(arena, 0, 1);
    CHECK(pieces.size() == 100);
    for (std::size_t n = 0; n < pieces.size(); ++n) {
        CHECK(pieces[n].size() == 16);
        CHECK(pieces[n].data() == memory.span.data() + 16 * n);
    }
}

TEST_CASE("memory is cut by the number of CPUs of each cluster that take part") {
    FakeSystem system(1);
    Memory memory(16 * 1000);
    Arena arena;
    const std::uint32_t cpus[] = {1, 0, 4, 3};
    arena.reset(system, running, memory.span, cpus);
    std::size_t own[4] = {};
    for (std::size_t offset = 0; offset < memory.span.size(); offset += 16) {
        for (std::uint32_t cluster = 0; cluster < 4; ++cluster)
            own[cluster] += arena.owns(cluster, memory.span.subspan(offset, 16)) ? 16U : 0U;
    }
    CHECK(own[0] == 2000);
    CHECK(own[1] == 0);
    CHECK(own[2] == 8000);
    CHECK(own[3] == 6000);
}

TEST_CASE("an arena that fits nothing answers so and stays usable") {
    FakeSystem system(1);
    Memory memory(256);
    Arena arena;
    const std::uint32_t cpus[] = {1};
    arena.reset(system, running, {}, cpus);
    CHECK(arena.allocate(0, 16).empty());
    arena.reset(system, running, memory.span, cpus);
    CHECK(arena.allocate(0, 257).empty());
    CHECK(arena.allocate(0, SIZE_MAX).empty());
    CHECK(arena.allocate(0, SIZE_MAX - 15).empty());
    CHECK(arena.allocate(0, 0).empty());
    CHECK(arena.allocate(0, 256).size() == 256);
    CHECK(arena.allocate(0, 1).empty());
}

TEST_CASE("a tail given back is allocated again, the best fitting first, the rest of it kept") {
    FakeSystem system(1);
    Memory memory(1024 + 256 + 512);
    Arena arena;
    const std::uint32_t cpus[] = {1};
    arena.reset(system, running, memory.span, cpus);
    const auto a = arena.allocate(0, 1024);
    const auto b = arena.allocate(0, 256);
    const auto c = arena.allocate(0, 512);
    REQUIRE(arena.allocate(0, 16).empty());
    arena.give_back(0, a);
    arena.give_back(0, b);
    arena.give_back(0, c);
    // 200 fits all three; 256 is the smallest.
    CHECK(arena.allocate(0, 200).data() == b.data());
    CHECK(arena.allocate(0, 300).data() == c.data());
    // What is left of it: 512 - 304 (300 in granules).
    const auto rest = arena.allocate(0, 208);
    CHECK(rest.data() == c.data() + 304);
    CHECK(arena.allocate(0, 1024).data() == a.data());
    CHECK(arena.allocate(0, 16).empty());
}

TEST_CASE("a CPU borrows from other clusters only when its own has nothing, tails included") {
    FakeSystem system(1);
    Memory memory(2048);
    Arena arena;
    const std::uint32_t cpus[] = {1, 1};
    arena.reset(system, running, memory.span, cpus);
    const auto first = arena.allocate(1, 1024);
    CHECK(arena.owns(1, first));
    arena.give_back(1, first.subspan(512));
    CHECK(arena.owns(1, arena.allocate(1, 512)));
    CHECK(arena.owns(0, arena.allocate(1, 512)));
    CHECK(arena.owns(0, arena.allocate(1, 512)));
    CHECK(arena.allocate(1, 512).empty());
}

TEST_CASE("CPUs that allocate and give back at once never get the same bytes") {
    const unsigned threads = GENERATE(2U, 4U, 8U);
    FakeSystem system(threads);
    Memory memory(64 * 1024);
    Arena arena;
    const std::uint32_t cpus[] = {threads - threads / 2, threads / 2};
    arena.reset(system, running, memory.span, cpus);
    std::atomic<bool> overlap{false};
    std::atomic<std::size_t> allocations{0};
    std::vector<std::thread> workers;
    for (unsigned n = 0; n < threads; ++n) {
        workers.emplace_back([&, n] {
            FakeSystem::become_cpu(n);
            std::mt19937 random(n);
            std::vector<std::span<std::byte>> held;
            const auto tag = static_cast<std::byte>(n + 1);
            const auto check_and_give_back = [&](std::size_t index) {
                for (const std::byte byte : held[index]) {
                    if (byte != tag)
                        overlap = true;
                }
                // A tail of it first, then the rest.
                const auto cut = held[index].size() / 2;
                arena.give_back(n % 2, held[index].subspan(cut));
                arena.give_back(n % 2, held[index].first(cut));
                held[index] = held.back();
                held.pop_back();
            };
            for (int turn = 0; turn < 2000; ++turn) {
                if (held.size() < 12) {
                    const auto piece = arena.allocate(n % 2, 64 + random() % 1500);
                    if (!piece.empty()) {
                        std::memset(piece.data(), static_cast<int>(tag), piece.size());
                        held.push_back(piece);
                        allocations.fetch_add(1);
                    }
                }
                if (!held.empty() && random() % 2 == 0)
                    check_and_give_back(random() % held.size());
            }
            while (!held.empty())
                check_and_give_back(0);
        });
    }
    for (auto& worker : workers)
        worker.join();
    CHECK_FALSE(overlap);
    CHECK(allocations > 500);
    CHECK(system.missed_signals() == 0);
}
