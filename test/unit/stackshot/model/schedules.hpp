#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace model {

/// What happens during a collection besides the collection.
enum class Scenario : std::uint8_t {
    undisturbed,
    little_memory,  ///< whichever allocation fails
    errors,         ///< one or two threads cannot be read
    panics,         ///< one or two CPUs panic, wherever they are
    all_at_once,
};
inline constexpr Scenario scenarios[] = {Scenario::undisturbed, Scenario::little_memory,
                                         Scenario::errors, Scenario::panics, Scenario::all_at_once};
const char* name(Scenario scenario);

/// What came of one schedule.
struct Schedule {
    /// What went wrong: a data race, a hang, a CPU that left too early or too late, an error that
    /// nobody had, or output other than of a single-threaded capture. Empty: nothing.
    std::string failure{};
    std::uint64_t digest = 0;  ///< see Scheduler::digest()
};

/// Runs one schedule of a collection: how many CPUs of which kinds, which tasks and in which order
/// the CPUs go on follow from `seed`.
Schedule run_schedule(Scenario scenario, std::uint64_t seed);

}  // namespace model
