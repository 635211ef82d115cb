#include "kernel/byte_queue.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <thread>
#include <vector>

using kernel::ByteQueue;

TEST_CASE("a queue takes what it has room for and gives it out in order") {
    ByteQueue<8> queue;
    std::byte next{0xff};
    CHECK(queue.empty());
    CHECK_FALSE(queue.peek(next));
    const std::array<std::byte, 6> six = {std::byte{0}, std::byte{1}, std::byte{2},
                                          std::byte{3}, std::byte{4}, std::byte{5}};
    CHECK(queue.put(six) == 6);
    CHECK(queue.put(six) == 2);
    CHECK(queue.put(six) == 0);
    for (int expected : {0, 1, 2, 3, 4, 5, 0, 1}) {
        REQUIRE(queue.peek(next));
        CHECK(next == std::byte(expected));
        // Shown is not taken: who looks again finds it again.
        REQUIRE(queue.peek(next));
        CHECK(next == std::byte(expected));
        queue.pop();
    }
    CHECK(queue.empty());
    CHECK(queue.put({}) == 0);
}

TEST_CASE("a queue says how much is in it, and gives out several bytes at a time") {
    ByteQueue<8> queue;
    const std::array<std::byte, 5> five = {std::byte{0}, std::byte{1}, std::byte{2}, std::byte{3},
                                           std::byte{4}};
    std::array<std::byte, 6> taken{};
    CHECK(queue.take(taken) == 0);
    CHECK(queue.put(five) == 5);
    CHECK_FALSE(queue.full());
    CHECK(queue.take(std::span(taken).first(2)) == 2);
    CHECK((taken[0] == five[0] && taken[1] == five[1]));
    CHECK(queue.put(five) == 5);
    CHECK(queue.full());
    CHECK(queue.size() == 8);
    // Across the end of the memory.
    CHECK(queue.take(taken) == 6);
    CHECK((taken[2] == five[4] && taken[3] == five[0] && taken[5] == five[2]));
    CHECK(queue.take(taken) == 2);
    CHECK(taken[1] == five[4]);
    CHECK(queue.empty());
}

TEST_CASE("no byte is lost, doubled or seen too early between two threads") {
    constexpr std::size_t count = 200'000;
    ByteQueue<64> queue;
    std::thread producer([&] {
        std::size_t sent = 0;
        while (sent < count) {
            std::array<std::byte, 23> bytes;
            const std::size_t size = std::min(bytes.size(), count - sent);
            for (std::size_t i = 0; i < size; i++)
                bytes[i] = static_cast<std::byte>((sent + i) * 31 >> 3);
            const std::size_t put = queue.put(std::span(bytes).first(size));
            sent += put;
            if (put == 0)
                std::this_thread::yield();
        }
    });
    std::size_t wrong = 0;
    for (std::size_t taken = 0; taken < count;) {
        std::byte next;
        if (!queue.peek(next)) {
            std::this_thread::yield();
            continue;
        }
        wrong += next != static_cast<std::byte>(taken * 31 >> 3);
        queue.pop();
        taken++;
    }
    producer.join();
    CHECK(wrong == 0);
    CHECK(queue.empty());
}
