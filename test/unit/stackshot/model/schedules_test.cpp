#include "test/unit/stackshot/model/schedules.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <string>

using namespace model;

// STACKSHOT_MODEL_SCHEDULES: how many schedules there are in all (2,000). STACKSHOT_MODEL_SEED: the
// one to run, as a failure names it, instead.

namespace {

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

void run(Scenario scenario) {
    const std::uint64_t one = number("STACKSHOT_MODEL_SEED", 0);
    const std::uint64_t count =
        one != 0 ? 1 : number("STACKSHOT_MODEL_SCHEDULES", 2000) / std::size(scenarios);
    for (std::uint64_t n = 1; n <= count; ++n) {
        const std::uint64_t seed = one != 0 ? one : n;
        const std::string failure = run_schedule(scenario, seed);
        INFO("scenario: " << name(scenario) << "; run again with STACKSHOT_MODEL_SEED=" << seed);
        REQUIRE(failure == "");
    }
}

}  // namespace

TEST_CASE("no schedule loses a task, records one twice or hangs") {
    run(Scenario::undisturbed);
}
TEST_CASE("whichever allocation fails in whatever schedule, the collection ends") {
    run(Scenario::little_memory);
}
TEST_CASE("in whatever schedule, the first error is the collection's") {
    run(Scenario::errors);
}
TEST_CASE("wherever CPUs panic, one goes on, and nobody records any more") {
    run(Scenario::panics);
}
TEST_CASE("panics, errors and little memory together end in no hang and no race") {
    run(Scenario::all_at_once);
}
TEST_CASE("a seed makes the same schedule again") {
    // What a schedule draws by lot is drawn from its seed alone, so that so is what it finds.
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
        CHECK(run_schedule(Scenario::all_at_once, seed) ==
              run_schedule(Scenario::all_at_once, seed));
}
