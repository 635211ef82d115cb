#include "stackshot/work_queue.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <thread>
#include <vector>

using namespace stackshot;

TEST_CASE("items come out once each, in the order they were pushed") {
    std::vector<WorkItem> storage(5);
    WorkQueue queue;
    queue.reset(storage);
    CHECK(queue.claim() == nullptr);
    for (std::uint64_t n = 1; n <= 5; ++n)
        CHECK(queue.push(TaskRef{n}));
    CHECK_FALSE(queue.push(TaskRef{6}));
    CHECK_FALSE(queue.populated());
    queue.set_populated();
    CHECK(queue.populated());
    for (std::uint64_t n = 1; n <= 5; ++n) {
        WorkItem* item = queue.claim();
        REQUIRE(item != nullptr);
        CHECK(item->task == TaskRef{n});
    }
    CHECK(queue.claim() == nullptr);
    CHECK(queue.items().size() == 5);
}

TEST_CASE("looks at an empty queue do not use up items pushed later") {
    std::vector<WorkItem> storage(3);
    WorkQueue queue;
    queue.reset(storage);
    for (int n = 0; n < 10; ++n)
        CHECK(queue.claim() == nullptr);
    for (std::uint64_t n = 1; n <= 3; ++n) {
        CHECK(queue.push(TaskRef{n}));
        WorkItem* item = queue.claim();
        REQUIRE(item != nullptr);
        CHECK(item->task == TaskRef{n});
        CHECK(queue.claim() == nullptr);
    }
}

TEST_CASE("each item is claimed by exactly one of many CPUs while the queue fills") {
    const unsigned threads = GENERATE(2U, 3U, 4U, 8U);
    constexpr std::size_t count = 2000;
    std::vector<WorkItem> storage(count);
    WorkQueue queue;
    queue.reset(storage);
    std::vector<std::atomic<int>> claims(count);
    std::vector<std::thread> workers;
    for (unsigned n = 0; n < threads; ++n) {
        workers.emplace_back([&] {
            for (;;) {
                const bool last_look = queue.populated();
                WorkItem* item = queue.claim();
                if (item != nullptr)
                    claims[static_cast<std::size_t>(item->task) - 1].fetch_add(1);
                else if (last_look)
                    return;
                else
                    std::this_thread::yield();
            }
        });
    }
    for (std::uint64_t n = 1; n <= count; ++n)
        REQUIRE(queue.push(TaskRef{n}));
    queue.set_populated();
    for (auto& worker : workers)
        worker.join();
    for (const auto& claim : claims)
        REQUIRE(claim == 1);
}
