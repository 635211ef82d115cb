#include "stackshot/capture_lock.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <thread>
#include <vector>

#include "fake_system.hpp"

using namespace stackshot;

TEST_CASE("a lock among CPUs lets one in at a time and wakes those who wait") {
    const unsigned threads = GENERATE(2U, 4U, 8U);
    FakeSystem system(threads);
    CaptureLock lock;
    std::size_t counter = 0;
    std::vector<std::thread> workers;
    for (unsigned n = 0; n < threads; ++n) {
        workers.emplace_back([&, n] {
            FakeSystem::become_cpu(n);
            for (int turn = 0; turn < 1000; ++turn) {
                lock.lock(system);
                ++counter;
                lock.unlock(system);
            }
        });
    }
    for (auto& worker : workers)
        worker.join();
    CHECK(counter == threads * 1000);
    CHECK(system.missed_signals() == 0);
}
