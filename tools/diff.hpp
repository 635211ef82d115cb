#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/snapshot.hpp"

namespace tools {

/// What became of a thread from one capture to another.
enum class ThreadChange : std::uint8_t {
    added,    ///< only in the second
    gone,     ///< only in the first
    moved,    ///< another stack
    stuck,    ///< the same stack, and not an idle thread
    idle,     ///< the idle thread of a CPU in both
    unknown,  ///< there are no two stacks to compare
};
/// "new", "gone", "moved" and so on.
const char* thread_change_name(ThreadChange change);

/// One thread in two captures.
struct ThreadDiff {
    ThreadChange change = ThreadChange::unknown;
    // Of each capture; nullptr: the thread is not in it.
    const TaskSnapshot* task_before = nullptr;
    const ThreadSnapshot* before = nullptr;
    const TaskSnapshot* task_after = nullptr;
    const ThreadSnapshot* after = nullptr;
    /// CPU time in between; of a thread that is new, since its start. Nothing: not known.
    std::optional<std::uint64_t> user_usec{};
    std::optional<std::uint64_t> system_usec{};
    /// Whether it was on a CPU in between.
    std::optional<bool> ran{};

    const TaskSnapshot& task() const { return task_after != nullptr ? *task_after : *task_before; }
    const ThreadSnapshot& thread() const { return after != nullptr ? *after : *before; }
};

/// Two captures side by side. Points into them.
struct Diff {
    /// In the order of the second capture, then those that are gone.
    std::vector<ThreadDiff> threads{};
    std::vector<const TaskSnapshot*> new_tasks{};
    std::vector<const TaskSnapshot*> gone_tasks{};
    /// From the first to the second, in nanoseconds.
    std::optional<double> interval{};
};

/// Tasks are the same by unique pid, threads by id. A delta has to be complete (complete_delta()).
Diff make_diff(const Snapshot& before, const Snapshot& after);

}  // namespace tools
