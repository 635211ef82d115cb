#include "stackshot/chunk_chain.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "fake_system.hpp"
#include "kcdata/format.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

/// A collection that nobody panics in.
const CaptureState running;

constexpr std::uint32_t some_type = 0x7777;

struct Fixture {
    explicit Fixture(std::size_t size, std::size_t smallest = 64)
        : bytes(static_cast<std::byte*>(std::aligned_alloc(64, (size + 63) / 64 * 64)), &std::free),
          chain(arena, 0, smallest) {
        std::memset(bytes.get(), 0xaa, size);
        const std::uint32_t cpus[] = {1};
        arena.reset(system, running, {bytes.get(), size}, cpus);
    }
    FakeSystem system{1};
    std::unique_ptr<std::byte, decltype(&std::free)> bytes;
    Arena arena;
    ChunkChain chain;
};

/// Appends an item of `size` bytes, each of the value `tag`.
kern_return append(Writer& writer, std::size_t size, unsigned char tag) {
    const std::vector<unsigned char> payload(size, tag);
    return writer.append(some_type, std::as_bytes(std::span(payload)));
}

/// Reads the items of a chain as append() wrote them: {size, tag}.
std::vector<std::pair<std::size_t, unsigned char>> read(const Chunk* chunk) {
    std::vector<std::pair<std::size_t, unsigned char>> items;
    for (; chunk != nullptr; chunk = chunk->next) {
        auto rest = chunk->items();
        while (!rest.empty()) {
            // An item never spans chunks.
            REQUIRE(rest.size() >= sizeof(ItemHeader));
            ItemHeader header;
            std::memcpy(&header, rest.data(), sizeof(header));
            REQUIRE(header.type == some_type);
            REQUIRE(rest.size() - sizeof(header) >= header.size);
            const std::size_t size = header.size - (header.flags & 0xf);
            const auto payload = rest.subspan(sizeof(header), size);
            const auto tag = payload.empty() ? 0 : static_cast<unsigned char>(payload[0]);
            for (const std::byte byte : payload)
                REQUIRE(byte == static_cast<std::byte>(tag));
            for (const std::byte byte : rest.subspan(sizeof(header) + size, header.flags & 0xf))
                REQUIRE(byte == std::byte{0});
            items.emplace_back(size, static_cast<unsigned char>(tag));
            rest = rest.subspan(sizeof(header) + header.size);
        }
    }
    return items;
}

}  // namespace

TEST_CASE("a chain nothing was written to takes no memory") {
    Fixture f(1024);
    f.chain.start();
    CHECK(f.chain.finish() == nullptr);
    CHECK(chain_size(nullptr) == 0);
    CHECK(f.chain.bytes_taken() == 0);
    CHECK(f.arena.allocate(0, 1024).size() == 1024);
}

TEST_CASE("items stay whole and in order over many chunks") {
    const std::size_t smallest = GENERATE(1U, 64U, 200U, 5000U);
    Fixture f(100'000, smallest);
    Writer& writer = f.chain.start();
    std::vector<std::pair<std::size_t, unsigned char>> expected;
    for (std::size_t n = 1; n <= 60; ++n) {
        const std::size_t size = n * 37 % 300 + 1;
        REQUIRE(append(writer, size, static_cast<unsigned char>(n)) == KERN_SUCCESS);
        expected.emplace_back(size, static_cast<unsigned char>(n));
    }
    const Chunk* head = f.chain.finish();
    CHECK(read(head) == expected);
    std::size_t size = 0;
    for (const auto& [item, tag] : expected)
        size += sizeof(ItemHeader) + item + padding_for(item);
    CHECK(chain_size(head) == size);
}

TEST_CASE("a payload reserved in one chunk can be filled after later chunks were begun") {
    Fixture f(10'000, 64);
    Writer& writer = f.chain.start();
    auto early = writer.reserve(some_type, 32);
    REQUIRE(early.ok());
    for (unsigned char n = 0; n < 20; ++n)
        REQUIRE(append(writer, 100, 9) == KERN_SUCCESS);
    std::memset(early.value().data(), 5, 32);
    const auto items = read(f.chain.finish());
    REQUIRE(items.size() == 21);
    CHECK(items[0] == std::pair<std::size_t, unsigned char>{32, 5});
}

TEST_CASE("when the arena is empty the chain keeps what it has and takes smaller items") {
    Fixture f(512, 512);
    Writer& writer = f.chain.start();
    REQUIRE(append(writer, 300, 1) == KERN_SUCCESS);
    CHECK(append(writer, 300, 2) == KERN_INSUFFICIENT_BUFFER_SIZE);
    CHECK(append(writer, 100, 3) == KERN_SUCCESS);
    const auto items = read(f.chain.finish());
    CHECK(items == std::vector<std::pair<std::size_t, unsigned char>>{{300, 1}, {100, 3}});
}

TEST_CASE("the tail of a finished chain is used for the next one, even if it is a small chunk") {
    Fixture f(1024, 1024);
    REQUIRE(append(f.chain.start(), 100, 1) == KERN_SUCCESS);
    const Chunk* first = f.chain.finish();
    REQUIRE(append(f.chain.start(), 100, 2) == KERN_SUCCESS);
    const Chunk* second = f.chain.finish();
    CHECK(read(first) == std::vector<std::pair<std::size_t, unsigned char>>{{100, 1}});
    CHECK(read(second) == std::vector<std::pair<std::size_t, unsigned char>>{{100, 2}});
    // Header and item of each; what is left of the chunks is given back.
    constexpr std::size_t chunk = sizeof(Chunk) + sizeof(ItemHeader) + 112;
    CHECK(f.chain.bytes_taken() == 2 * chunk);
}

TEST_CASE("where memory is too short for whole chunks, items do not get one each") {
    Fixture f(10'000, 8000);
    REQUIRE(append(f.chain.start(), 7000, 1) == KERN_SUCCESS);
    (void)f.chain.finish();
    Writer& writer = f.chain.start();
    for (unsigned char n = 0; n < 20; ++n)
        REQUIRE(append(writer, 80, n) == KERN_SUCCESS);
    std::size_t chunks = 0;
    for (const Chunk* chunk = f.chain.finish(); chunk != nullptr; chunk = chunk->next)
        ++chunks;
    // 20 items of 96 bytes: two chunks of a quarter would do.
    CHECK(chunks <= 3);
}

TEST_CASE("with an allocation failing anywhere, every chain is whole or its writer was told") {
    // The memory's size decides which allocation is the first to fail.
    for (std::size_t size = 0; size < 6000; size += 48) {
        Fixture f(size, 100);
        std::vector<const Chunk*> chains;
        bool failed = false;
        for (unsigned char n = 0; n < 20 && !failed; ++n) {
            Writer& writer = f.chain.start();
            for (unsigned char k = 0; k < 3 && !failed; ++k)
                failed = append(writer, 60, n) != KERN_SUCCESS;
            if (!failed)
                chains.push_back(f.chain.finish());
        }
        CHECK(failed == (chains.size() < 20));
        for (std::size_t n = 0; n < chains.size(); ++n) {
            const std::pair<std::size_t, unsigned char> item{60, static_cast<unsigned char>(n)};
            REQUIRE(read(chains[n]) == std::vector{item, item, item});
        }
    }
}

TEST_CASE("chains made by many CPUs from one arena do not mix") {
    const unsigned threads = GENERATE(2U, 3U, 4U, 8U);
    FakeSystem system(threads);
    const std::size_t size = 400'000;
    std::unique_ptr<std::byte, decltype(&std::free)> bytes(
        static_cast<std::byte*>(std::aligned_alloc(64, size)), &std::free);
    Arena arena;
    const std::uint32_t cpus[] = {threads - threads / 2, threads / 2};
    arena.reset(system, running, {bytes.get(), size}, cpus);
    std::vector<std::vector<const Chunk*>> chains(threads);
    std::vector<std::thread> workers;
    for (unsigned n = 0; n < threads; ++n) {
        workers.emplace_back([&, n] {
            FakeSystem::become_cpu(n);
            ChunkChain chain(arena, n % 2, 400);
            const auto tag = static_cast<unsigned char>(n + 1);
            for (std::size_t k = 0; k < 1000; ++k) {
                Writer& writer = chain.start();
                bool ok = true;
                for (std::size_t item = 0; item < k % 5 && ok; ++item)
                    ok = append(writer, 10 + k % 90, tag) == KERN_SUCCESS;
                if (!ok)
                    return;
                chains[n].push_back(chain.finish());
            }
        });
    }
    for (auto& worker : workers)
        worker.join();
    std::size_t total = 0;
    for (unsigned n = 0; n < threads; ++n) {
        for (std::size_t k = 0; k < chains[n].size(); ++k) {
            const std::pair<std::size_t, unsigned char> item{10 + k % 90,
                                                             static_cast<unsigned char>(n + 1)};
            REQUIRE(read(chains[n][k]) == std::vector(k % 5, item));
            ++total;
        }
    }
    CHECK(total > 500);
    CHECK(system.missed_signals() == 0);
}
