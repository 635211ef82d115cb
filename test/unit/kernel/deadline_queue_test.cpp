#include "kernel/deadline_queue.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <catch2/catch_test_macros.hpp>

using kernel::DeadlineQueue;
using kernel::Thread;

TEST_CASE("the deadline queue gives deadlines in ascending order") {
    std::mt19937 random(1);
    std::array<Thread, 500> threads;
    DeadlineQueue queue;
    std::vector<std::uint64_t> expected;
    for (Thread& thread : threads) {
        thread.deadline = random() % 300;
        expected.push_back(thread.deadline);
        queue.insert(thread);
    }
    std::ranges::sort(expected);
    std::vector<std::uint64_t> given;
    while (Thread* thread = queue.first()) {
        given.push_back(thread->deadline);
        queue.remove(*thread);
    }
    CHECK(given == expected);
}

TEST_CASE("a thread leaves the deadline queue from any place in it") {
    std::mt19937 random(2);
    std::array<Thread, 200> threads;
    DeadlineQueue queue;
    std::vector<Thread*> inside, outside;
    for (Thread& thread : threads)
        outside.push_back(&thread);
    for (int step = 0; step < 20'000; step++) {
        const bool insert = inside.empty() || (!outside.empty() && random() % 2 == 0);
        auto& from = insert ? outside : inside;
        auto& to = insert ? inside : outside;
        const auto place = from.begin() + static_cast<std::ptrdiff_t>(random() % from.size());
        Thread* const thread = *place;
        from.erase(place);
        to.push_back(thread);
        if (insert) {
            thread->deadline = random() % 1000;
            queue.insert(*thread);
        } else {
            queue.remove(*thread);
        }
        if (inside.empty()) {
            REQUIRE(queue.first() == nullptr);
        } else {
            const auto earliest = std::ranges::min_element(inside, {}, &Thread::deadline);
            REQUIRE(queue.first() != nullptr);
            REQUIRE(queue.first()->deadline == (*earliest)->deadline);
        }
    }
}
