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
    const CaptureState state;
    std::size_t counter = 0;
    std::vector<std::thread> workers;
    for (unsigned n = 0; n < threads; ++n) {
        workers.emplace_back([&, n] {
            FakeSystem::become_cpu(n);
            for (int turn = 0; turn < 1000; ++turn) {
                if (!lock.lock(system, state))
                    return;
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

TEST_CASE("a CPU does not wait any longer for a lock when the collection panicked") {
    FakeSystem system(2);
    CaptureLock lock;
    CaptureState state;
    REQUIRE(state.set_up());
    REQUIRE(lock.lock(system, state));
    bool locked = true;
    std::thread other([&] {
        FakeSystem::become_cpu(1);
        locked = lock.lock(system, state);
    });
    while (system.waiting_auxiliaries() == 0)
        std::this_thread::yield();
    CHECK(state.panic());
    system.signal_event();
    other.join();
    CHECK_FALSE(locked);
    CHECK(system.missed_signals() == 0);
}
