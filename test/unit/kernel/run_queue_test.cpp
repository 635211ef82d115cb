#include "kernel/run_queue.hpp"

#include <array>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include <catch2/catch_test_macros.hpp>

using kernel::RunQueue;
using kernel::Thread;

TEST_CASE("an empty run queue has no thread and no priority") {
    RunQueue queue;
    CHECK(queue.highest_priority() == -1);
    CHECK(queue.pop() == nullptr);
}

TEST_CASE("the run queue gives the highest priority first, and within it the front") {
    std::mt19937 random(3);
    std::array<Thread, 300> threads;
    std::vector<Thread*> outside;
    for (Thread& thread : threads)
        outside.push_back(&thread);
    RunQueue queue;
    std::map<int, std::deque<Thread*>> expected;
    for (int step = 0; step < 20'000; step++) {
        if (!outside.empty() && random() % 2 == 0) {
            Thread* const thread = outside.back();
            outside.pop_back();
            thread->sched_pri = static_cast<std::int16_t>(random() % (kernel::MAXPRI + 1));
            auto& level = expected[thread->sched_pri];
            if (random() % 4 == 0) {
                queue.push_front(*thread);
                level.push_front(thread);
            } else {
                queue.push_back(*thread);
                level.push_back(thread);
            }
        } else if (!expected.empty()) {
            const auto highest = std::prev(expected.end());
            REQUIRE(queue.highest_priority() == highest->first);
            Thread* const thread = queue.pop();
            REQUIRE(thread == highest->second.front());
            outside.push_back(thread);
            highest->second.pop_front();
            if (highest->second.empty())
                expected.erase(highest);
        }
        REQUIRE(queue.highest_priority() ==
                (expected.empty() ? -1 : std::prev(expected.end())->first));
    }
}
