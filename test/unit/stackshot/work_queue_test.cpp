#include "stackshot/work_queue.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <thread>
#include <vector>

using namespace stackshot;

namespace {

/// Queues with room for `capacity` items.
struct Queues {
    Queues(std::size_t capacity, std::uint32_t queues)
        : storage(WorkQueues::storage_size(capacity, queues)) {
        work.reset(storage, queues);
    }
    bool push(std::uint64_t task, std::uint64_t threads = 1) {
        return work.push(TaskRef{task}, {}, threads);
    }
    /// The task of the next item for a CPU of `type`; 0: there is none.
    std::uint64_t claim(ClusterType type = ClusterType::SMP) {
        WorkItem* item = work.claim(type);
        return item == nullptr ? 0 : static_cast<std::uint64_t>(TaskRef{item->task});
    }
    std::vector<std::byte> storage;
    WorkQueues work;
};

}  // namespace

TEST_CASE("items come out once each, in the order they were pushed") {
    Queues queues(5, 1);
    CHECK(queues.claim() == 0);
    for (std::uint64_t n = 1; n <= 5; ++n)
        CHECK(queues.push(n, n % 2 == 0 ? 100 : 1));
    CHECK_FALSE(queues.push(6));
    CHECK_FALSE(queues.work.populated());
    queues.work.set_populated();
    CHECK(queues.work.populated());
    for (std::uint64_t n = 1; n <= 5; ++n)
        CHECK(queues.claim() == n);
    CHECK(queues.claim() == 0);
    CHECK(queues.work.items().size() == 5);
}

TEST_CASE("looks at an empty queue do not use up items pushed later") {
    Queues queues(3, 1);
    for (int n = 0; n < 10; ++n)
        CHECK(queues.claim() == 0);
    for (std::uint64_t n = 1; n <= 3; ++n) {
        CHECK(queues.push(n));
        CHECK(queues.claim() == n);
        CHECK(queues.claim() == 0);
    }
}

TEST_CASE("of two queues, the hard one has the items of ten threads and more") {
    CHECK(WorkQueues::queue_index(0, 2) == 0);
    CHECK(WorkQueues::queue_index(9, 2) == 0);
    CHECK(WorkQueues::queue_index(10, 2) == 1);
    CHECK(WorkQueues::queue_index(UINT32_MAX, 2) == 1);
    CHECK(WorkQueues::queue_index(UINT32_MAX, 1) == 0);
}

TEST_CASE("P cores take hard items first, E cores easy ones, and each the others' at last") {
    Queues queues(8, 2);
    const std::uint64_t threads[] = {1, 50, 2, 60, 3, 70};
    for (std::uint64_t n = 1; n <= 6; ++n)
        REQUIRE(queues.push(n, threads[n - 1]));
    CHECK(queues.claim(ClusterType::P) == 2);
    CHECK(queues.claim(ClusterType::E) == 1);
    CHECK(queues.claim(ClusterType::P) == 4);
    CHECK(queues.claim(ClusterType::P) == 6);
    CHECK(queues.claim(ClusterType::P) == 3);
    REQUIRE(queues.push(7, 80));
    CHECK(queues.claim(ClusterType::E) == 5);
    CHECK(queues.claim(ClusterType::E) == 7);
    CHECK(queues.claim(ClusterType::E) == 0);
    CHECK(queues.claim(ClusterType::P) == 0);

    // Whoever took them, the order of the output is that of the pushes.
    std::uint64_t n = 0;
    for (const WorkItem& item : queues.work.items())
        CHECK(TaskRef{item.task} == TaskRef{++n});
    CHECK(n == 7);
}

TEST_CASE("each item is claimed by exactly one of many CPUs while the queues fill") {
    const unsigned threads = GENERATE(2U, 3U, 4U, 8U);
    const std::uint32_t queue_count = GENERATE(1U, 2U);
    constexpr std::size_t count = 2000;
    Queues queues(count, queue_count);
    std::vector<std::atomic<int>> claims(count);
    std::vector<std::thread> workers;
    for (unsigned n = 0; n < threads; ++n) {
        workers.emplace_back([&, n] {
            for (;;) {
                const bool last_look = queues.work.populated();
                const auto task = queues.claim(n % 2 == 0 ? ClusterType::P : ClusterType::E);
                if (task != 0)
                    claims[task - 1].fetch_add(1);
                else if (last_look)
                    return;
                else
                    std::this_thread::yield();
            }
        });
    }
    for (std::uint64_t n = 1; n <= count; ++n)
        REQUIRE(queues.push(n, n % 20));
    queues.work.set_populated();
    for (auto& worker : workers)
        worker.join();
    for (const auto& claim : claims)
        REQUIRE(claim == 1);
}
