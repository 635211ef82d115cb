#include "kernel/coalition.hpp"

#include <algorithm>
#include <cstring>

#include "kcdata/records.hpp"
#include "kernel/heap.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/task.hpp"

namespace kernel {
namespace {

constinit Coalition the_kernel_coalition;
constinit Coalition the_default_coalition;
constinit CoalitionList coalitions;
constinit ThreadGroupList thread_groups;
constinit std::uint64_t last_coalition_id = 0;
constinit std::uint64_t last_thread_group_id = 0;

void add(SchedulerGuard&, Coalition& coalition, const char* name, std::uint64_t flags,
         std::uint64_t thread_group_flags) {
    coalition.id = ++last_coalition_id;
    coalition.flags = flags;
    coalition.references = 1;
    ThreadGroup& group = coalition.thread_group;
    group.id = ++last_thread_group_id;
    group.flags = thread_group_flags;
    std::memcpy(group.name, name, std::min(std::strlen(name), ThreadGroup::max_name));
    coalitions.push_back(coalition);
    thread_groups.push_back(group);
}

}  // namespace

void initialize_coalitions(SchedulerGuard& guard) {
    add(guard, the_kernel_coalition, "kernel", kcdata::kCoalitionPrivileged,
        kcdata::kThreadGroupCritical);
    add(guard, the_default_coalition, "daemons", 0, 0);
}

Coalition& kernel_coalition() {
    return the_kernel_coalition;
}

Coalition& default_coalition() {
    return the_default_coalition;
}

kcdata::Result<Coalition*> coalition_create(const char* name, std::uint64_t flags,
                                            std::uint64_t thread_group_flags) {
    auto* const coalition = heap::create<Coalition>();
    if (coalition == nullptr)
        return kcdata::KERN_RESOURCE_SHORTAGE;
    SchedulerGuard guard;
    add(guard, *coalition, name, flags, thread_group_flags);
    return coalition;
}

void coalition_release(Coalition& coalition) {
    bool last = false;
    {
        SchedulerGuard guard;
        last = coalition_drop(guard, coalition);
    }
    if (last)
        coalition_destroy(coalition);
}

void coalition_add_task(SchedulerGuard&, Coalition& coalition, Task& task) {
    ++coalition.references;
    if (coalition.leader_unique_pid == 0)
        coalition.leader_unique_pid = task.unique_pid;
    task.coalition = &coalition;
    task.coalition_id = coalition.id;
}

bool coalition_drop(SchedulerGuard&, Coalition& coalition) {
    CHECK(coalition.references > 0);
    if (--coalition.references > 0)
        return false;
    coalitions.remove(coalition);
    thread_groups.remove(coalition.thread_group);
    return true;
}

void coalition_destroy(Coalition& coalition) {
    heap::destroy(&coalition);
}

const CoalitionList& coalition_list() {
    return coalitions;
}

const ThreadGroupList& thread_group_list() {
    return thread_groups;
}

}  // namespace kernel
