#include "tools/diff.hpp"

#include <map>
#include <unordered_set>
#include <utility>

#include "kcdata/records.hpp"

namespace tools {

namespace {

using Key = std::pair<std::uint64_t, std::uint64_t>;

struct Place {
    const TaskSnapshot* task = nullptr;
    const ThreadSnapshot* thread = nullptr;
};

template <typename Visit>
void for_each_thread(const Snapshot& snapshot, const Visit& visit) {
    for (const TaskSnapshot& task : snapshot.tasks) {
        for (const ThreadSnapshot& thread : task.threads)
            visit(task, thread);
        for (const ThreadSnapshot& thread : task.unchanged_threads)
            visit(task, thread);
    }
}

std::optional<std::uint64_t> difference(std::optional<std::uint64_t> before,
                                        std::optional<std::uint64_t> after) {
    if (!before || !after || *after < *before)
        return std::nullopt;
    return *after - *before;
}

bool is_idle(const ThreadSnapshot& thread) {
    return (thread.state.value_or(0) & kcdata::SS_TH_IDLE) != 0;
}

ThreadChange change_of(const ThreadSnapshot& before, const ThreadSnapshot& after) {
    if (is_idle(before) && is_idle(after))
        return ThreadChange::idle;
    const auto has_stack = [](const ThreadSnapshot& thread) {
        return thread.kernel_stack || thread.user_stack;
    };
    if (!has_stack(before) || !has_stack(after))
        return ThreadChange::unknown;
    const bool same =
        before.kernel_stack == after.kernel_stack && before.user_stack == after.user_stack;
    return same ? ThreadChange::stuck : ThreadChange::moved;
}

/// A thread on a CPU runs, whatever its times say.
std::optional<bool> ran_between(const ThreadDiff& diff) {
    if (diff.after->unchanged)
        return false;
    if (diff.before->has(kcdata::kThreadOnCore) || diff.after->has(kcdata::kThreadOnCore))
        return true;
    if (diff.before->last_run_time && diff.after->last_run_time)
        return *diff.before->last_run_time != *diff.after->last_run_time;
    if (diff.user_usec && diff.system_usec)
        return *diff.user_usec + *diff.system_usec != 0;
    return std::nullopt;
}

}  // namespace

const char* thread_change_name(ThreadChange change) {
    switch (change) {
        case ThreadChange::added:
            return "new";
        case ThreadChange::gone:
            return "gone";
        case ThreadChange::moved:
            return "moved";
        case ThreadChange::stuck:
            return "stuck";
        case ThreadChange::idle:
            return "idle";
        case ThreadChange::unknown:
            return "unknown";
    }
    return "";
}

Diff make_diff(const Snapshot& before, const Snapshot& after) {
    Diff diff;
    const auto begin = before.nanoseconds(before.absolute_time);
    const auto end = after.nanoseconds(after.absolute_time);
    if (begin && end)
        diff.interval = *end - *begin;

    std::map<Key, Place> earlier;
    for_each_thread(before, [&](const TaskSnapshot& task, const ThreadSnapshot& thread) {
        earlier.emplace(Key(task.unique_pid, thread.id), Place{&task, &thread});
    });
    std::unordered_set<const ThreadSnapshot*> met;
    for_each_thread(after, [&](const TaskSnapshot& task, const ThreadSnapshot& thread) {
        ThreadDiff& each = diff.threads.emplace_back();
        each.task_after = &task;
        each.after = &thread;
        const auto found = earlier.find(Key(task.unique_pid, thread.id));
        if (found == earlier.end()) {
            each.change = ThreadChange::added;
            each.user_usec = thread.user_usec;
            each.system_usec = thread.system_usec;
            return;
        }
        each.task_before = found->second.task;
        each.before = found->second.thread;
        met.insert(each.before);
        each.change = change_of(*each.before, thread);
        each.user_usec = difference(each.before->user_usec, thread.user_usec);
        each.system_usec = difference(each.before->system_usec, thread.system_usec);
        each.ran = ran_between(each);
    });
    for_each_thread(before, [&](const TaskSnapshot& task, const ThreadSnapshot& thread) {
        if (met.contains(&thread))
            return;
        ThreadDiff& each = diff.threads.emplace_back();
        each.change = ThreadChange::gone;
        each.task_before = &task;
        each.before = &thread;
    });

    std::map<std::uint64_t, unsigned> tasks;
    constexpr unsigned in_before = 1, in_after = 2;
    for (const TaskSnapshot& task : before.tasks)
        tasks[task.unique_pid] |= in_before;
    for (const TaskSnapshot& task : after.tasks)
        tasks[task.unique_pid] |= in_after;
    for (const TaskSnapshot& task : after.tasks)
        if (tasks[task.unique_pid] == in_after)
            diff.new_tasks.push_back(&task);
    for (const TaskSnapshot& task : before.tasks)
        if (tasks[task.unique_pid] == in_before)
            diff.gone_tasks.push_back(&task);
    return diff;
}

}  // namespace tools
