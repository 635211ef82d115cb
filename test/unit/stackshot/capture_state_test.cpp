#include "stackshot/capture_state.hpp"

#include <catch2/catch_test_macros.hpp>
#include <thread>
#include <vector>

using namespace kcdata;
using stackshot::CaptureState;

TEST_CASE("the state goes from INACTIVE over SETUP to RUNNING and back, and no other way") {
    CaptureState state;
    CHECK(state.state() == CaptureState::INACTIVE);
    CHECK_FALSE(state.run());
    CHECK_FALSE(state.fail(KERN_FAILURE));
    CHECK(state.set_up());
    CHECK_FALSE(state.set_up());
    CHECK(state.state() == CaptureState::SETUP);
    CHECK(state.run());
    CHECK_FALSE(state.run());
    CHECK(state.state() == CaptureState::RUNNING);
    CHECK(state.error() == KERN_SUCCESS);
    CHECK(state.finish());
    CHECK(state.state() == CaptureState::INACTIVE);
}

TEST_CASE("an error during SETUP keeps RUNNING from coming") {
    CaptureState state;
    REQUIRE(state.set_up());
    CHECK(state.fail(KERN_INSUFFICIENT_BUFFER_SIZE));
    CHECK_FALSE(state.run());
    CHECK(state.state() == CaptureState::ERRORED);
    CHECK(state.error() == KERN_INSUFFICIENT_BUFFER_SIZE);
}

TEST_CASE("a panic ends any active state for good") {
    CaptureState state;
    CHECK_FALSE(state.panic());
    CHECK(state.state() == CaptureState::INACTIVE);

    const auto panicked = [](CaptureState& one) {
        CHECK(one.panic());
        CHECK(one.panic());
        CHECK(one.panicked());
        CHECK(one.error() == KERN_ABORTED);
        CHECK_FALSE(one.run());
        CHECK_FALSE(one.fail(KERN_FAILURE));
        CHECK_FALSE(one.finish());
        CHECK(one.panicked());
    };
    REQUIRE(state.set_up());
    panicked(state);
    CaptureState running;
    REQUIRE(running.set_up());
    REQUIRE(running.run());
    panicked(running);
    CaptureState errored;
    REQUIRE(errored.set_up());
    REQUIRE(errored.fail(KERN_FAILURE));
    panicked(errored);
}

TEST_CASE("the first of many errors wins") {
    for (int round = 0; round < 50; ++round) {
        CaptureState state;
        REQUIRE(state.set_up());
        REQUIRE(state.run());
        std::atomic<int> winners{0};
        std::atomic<std::int32_t> winner{0};
        std::vector<std::thread> threads;
        for (std::int32_t n = 1; n <= 4; ++n) {
            threads.emplace_back([&, n] {
                if (state.fail(static_cast<kern_return>(n))) {
                    winners.fetch_add(1);
                    winner.store(n);
                }
            });
        }
        for (auto& thread : threads)
            thread.join();
        CHECK(winners == 1);
        CHECK(state.error() == static_cast<kern_return>(winner.load()));
    }
}
