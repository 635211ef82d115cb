#pragma once

#include <cstddef>
#include <cstdint>

#include "kcdata/result.hpp"
#include "kernel/list.hpp"

namespace kernel {

class SchedulerGuard;
struct Task;

/// Threads whose work belongs together. Lives and dies with its coalition.
struct ThreadGroup {
    static constexpr std::size_t max_name = 32;

    std::uint64_t id = 0;
    std::uint64_t flags = 0;   ///< kThreadGroup...
    char name[max_name] = {};  ///< without a NUL if it is that long
    ListLink<ThreadGroup> link{};
};
using ThreadGroupList = List<ThreadGroup, &ThreadGroup::link>;

/// Tasks that come and go together, such as an application and what serves it alone: a jetsam
/// coalition, whose tasks' threads are of one thread group. The scheduler lock guards what changes.
struct Coalition {
    std::uint64_t id = 0;
    std::uint64_t flags = 0;  ///< kCoalition...
    /// Of the first task that was put into it; 0: none yet.
    std::uint64_t leader_unique_pid = 0;
    std::uint32_t references = 0;  ///< one for the creator, one for each task
    ListLink<Coalition> link{};
    ThreadGroup thread_group{};
};
using CoalitionList = List<Coalition, &Coalition::link>;

/// A new coalition, whose thread group has this name, cut to 32 characters, and kThreadGroup...
/// flags. It lives until coalition_release() and as long as it has tasks. KERN_RESOURCE_SHORTAGE:
/// no memory. Thread context.
kcdata::Result<Coalition*> coalition_create(const char* name, std::uint64_t flags = 0,
                                            std::uint64_t thread_group_flags = 0);
/// Gives up the hold coalition_create() gave.
void coalition_release(Coalition& coalition);

/// The coalition of kernel_task, and the one of tasks that were put into no other. Never gone.
Coalition& kernel_coalition();
Coalition& default_coalition();
/// Puts these two into the list. Once, before there is a task.
void initialize_coalitions(SchedulerGuard&);

// For task.cpp.
void coalition_add_task(SchedulerGuard&, Coalition& coalition, Task& task);
/// True: it was the last hold; coalition_destroy() is to follow.
[[nodiscard]] bool coalition_drop(SchedulerGuard&, Coalition& coalition);
void coalition_destroy(Coalition& coalition);

/// All of them, for a reader in a stop. Otherwise the scheduler lock is to be held.
const CoalitionList& coalition_list();
const ThreadGroupList& thread_group_list();

}  // namespace kernel
