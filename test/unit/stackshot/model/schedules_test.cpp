#include "test/unit/stackshot/model/schedules.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <set>
#include <string>

using namespace model;

// STACKSHOT_MODEL_SCHEDULES: how many schedules there are in all (2,000). STACKSHOT_MODEL_SEED: the
// one to run, as a failure names it, instead.

namespace {

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

/// What goes wrong first in the scenario's share of the schedules, and in which. Empty: nothing
/// does.
std::string first_failure(Scenario scenario) {
    const std::uint64_t one = number("STACKSHOT_MODEL_SEED", 0);
    const std::uint64_t first = one != 0 ? one : 1;
    const std::uint64_t count =
        one != 0 ? 1 : number("STACKSHOT_MODEL_SCHEDULES", 2000) / std::size(scenarios);
    if (count == 0)
        return "no schedule was run";
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        if (const std::string failure = run_schedule(scenario, seed).failure; failure != "")
            return std::string(name(scenario)) + ", STACKSHOT_MODEL_SEED=" + std::to_string(seed) +
                   ": " + failure;
    }
    return "";
}

}  // namespace

TEST_CASE("no schedule loses a task, records one twice or hangs") {
    CHECK(first_failure(Scenario::undisturbed) == "");
}
TEST_CASE("whichever allocation fails in whatever schedule, the collection ends") {
    CHECK(first_failure(Scenario::little_memory) == "");
}
TEST_CASE("in whatever schedule, the first error is the collection's") {
    CHECK(first_failure(Scenario::errors) == "");
}
TEST_CASE("wherever CPUs panic, one goes on, and nobody records any more") {
    CHECK(first_failure(Scenario::panics) == "");
}
TEST_CASE("panics, errors and little memory together end in no hang and no race") {
    CHECK(first_failure(Scenario::all_at_once) == "");
}
TEST_CASE("a seed makes the same schedule again, and no other seed does") {
    // What a schedule draws by lot is drawn from its seed alone, so that so is what it finds.
    constexpr std::uint64_t count = 20;
    std::set<std::uint64_t> digests;
    for (std::uint64_t seed = 1; seed <= count; ++seed) {
        const std::uint64_t digest = run_schedule(Scenario::all_at_once, seed).digest;
        CHECK(run_schedule(Scenario::all_at_once, seed).digest == digest);
        digests.insert(digest);
    }
    CHECK(digests.size() == count);
}
