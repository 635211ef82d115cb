#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <string>

#include "test/unit/stackshot/model/schedules.hpp"

using namespace model;

// Linked with sources that differ from the collector's in one place: see meson.build.
TEST_CASE("the planted bug is found") {
    const char* symptom = std::getenv("PLANTED_BUG_SYMPTOM");
    REQUIRE(symptom != nullptr);
    constexpr std::uint64_t most = 10'000;
    for (std::uint64_t seed = 1; seed <= most; ++seed) {
        for (const Scenario scenario : scenarios) {
            const std::string failure = run_schedule(scenario, seed).failure;
            if (failure == "")
                continue;
            WARN(name(scenario) << ", seed " << seed << ": " << failure);
            CHECK(failure.find(symptom) != std::string::npos);
            return;
        }
    }
    FAIL("not found in " << most << " schedules of each scenario");
}
