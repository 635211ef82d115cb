#include "tools/wait_graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "kcdata/records.hpp"

namespace tools {

namespace {

using namespace kcdata;

// What the kernel fills in for each type: the kdp_*_find_owner() functions of XNU.
constexpr WaitType wait_types[] = {
    {kThreadWaitKernelMutex, WaitOwner::thread, false, "waits for", "mutex", "held by"},
    {kThreadWaitPortReceive, WaitOwner::port_name, false, "waits for a message on", "port", "from"},
    {kThreadWaitPortSetReceive, WaitOwner::none, false, "waits for a message on", "port set",
     "from"},
    {kThreadWaitPortSend, WaitOwner::task, false, "waits to send to", "port", "of"},
    {kThreadWaitPortSendInTransit, WaitOwner::port, false, "waits to send to", "port",
     "in transit to"},
    {kThreadWaitSemaphore, WaitOwner::creator, false, "waits for", "semaphore", "of"},
    {kThreadWaitKernelRWLockRead, WaitOwner::thread, false, "waits to read under", "rw lock",
     "held by"},
    {kThreadWaitKernelRWLockWrite, WaitOwner::thread, false, "waits to write under", "rw lock",
     "held by"},
    {kThreadWaitKernelRWLockUpgrade, WaitOwner::thread, false, "waits to upgrade", "rw lock",
     "held by"},
    {kThreadWaitUserLock, WaitOwner::thread, true, "waits for", "user lock", "held by"},
    {kThreadWaitPThreadMutex, WaitOwner::thread, true, "waits for", "pthread mutex", "held by"},
    {kThreadWaitPThreadRWLockRead, WaitOwner::thread, true, "waits to read under",
     "pthread rw lock", "held by"},
    {kThreadWaitPThreadRWLockWrite, WaitOwner::thread, true, "waits to write under",
     "pthread rw lock", "held by"},
    {kThreadWaitPThreadCondVar, WaitOwner::none, true, "waits on", "condition variable", "for"},
    {kThreadWaitParkedWorkQueue, WaitOwner::none, false, "is parked in its work queue", "", "for"},
    {kThreadWaitWorkloopSyncWait, WaitOwner::thread, true, "waits for", "workloop", "served by"},
    {kThreadWaitOnProcess, WaitOwner::process, false, "waits for the end of", "", ""},
    {kThreadWaitSleepWithInheritor, WaitOwner::thread, false, "sleeps", "", "until woken by"},
    {kThreadWaitEventlink, WaitOwner::thread, false, "waits for", "eventlink", "signalled by"},
    {kThreadWaitCompressor, WaitOwner::thread, false, "waits for", "compressor segment", "used by"},
    {kThreadWaitParkedBoundWorkQueue, WaitOwner::none, false, "is parked in its work queue", "",
     "for"},
    {kThreadWaitPageBusy, WaitOwner::none, false, "waits for", "busy page", "used by"},
    {kThreadWaitPagerInit, WaitOwner::none, false, "waits for the new pager of", "VM object",
     "used by"},
    {kThreadWaitPagerReady, WaitOwner::none, false, "waits for the pager of", "VM object",
     "used by"},
    {kThreadWaitPagingActivity, WaitOwner::none, false, "waits for paging to end in", "VM object",
     "used by"},
    {kThreadWaitMappingInProgress, WaitOwner::none, false, "waits for mapping to end in",
     "VM object", "used by"},
    {kThreadWaitMemoryBlocked, WaitOwner::none, false, "waits for the blocked", "VM object",
     "used by"},
    {kThreadWaitPagingInProgress, WaitOwner::none, false, "waits for paging to end in", "VM object",
     "used by"},
    {kThreadWaitPageInThrottle, WaitOwner::none, false, "waits, page-ins throttled, for",
     "VM object", "used by"},
    {kThreadWaitExclaveCore, WaitOwner::thread, false, "waits for", "ExclaveCore id", "held by"},
    {kThreadWaitExclaveKit, WaitOwner::thread, false, "waits for", "ExclaveKit id", "held by"},
};

/// Owners from here on are none; but for a process, of which they are the negated process group.
constexpr std::uint64_t first_special_owner = 0xfffffffffffffff0;

WaitGraph::Unknown special_owner(std::uint64_t owner) {
    using enum WaitGraph::Unknown;
    switch (owner) {
        case STACKSHOT_WAITOWNER_KERNEL:
            return kernel;
        case STACKSHOT_WAITOWNER_PORT_LOCKED:
            return port_locked;
        case STACKSHOT_WAITOWNER_PSET_LOCKED:
            return port_set_locked;
        case STACKSHOT_WAITOWNER_INTRANSIT:
            return in_transit;
        case STACKSHOT_WAITOWNER_MTXSPIN:
            return mutex_spin;
        case STACKSHOT_WAITOWNER_THREQUESTED:
            return thread_requested;
        case STACKSHOT_WAITOWNER_SUSPENDED:
            return suspended;
        default:
            return owner >= first_special_owner ? other_special : no;
    }
}

class GraphBuilder {
  public:
    explicit GraphBuilder(const Snapshot& snapshot) : snapshot_(snapshot) {}

    WaitGraph run() {
        graph_.complete = snapshot_.problems.empty();
        for (const TaskSnapshot& task : snapshot_.tasks)
            add(task);
        std::size_t waiting = 0;
        for (const WaitGraph::Thread& thread : graph_.threads)
            waiting += (thread.snapshot->state.value_or(0) & SS_TH_WAIT) != 0;
        for (std::size_t task = 0; task < snapshot_.tasks.size(); ++task)
            for (const WaitInfo& info : snapshot_.tasks[task].wait_infos)
                add(task, info);
        for (std::size_t task = 0; task < snapshot_.tasks.size(); ++task)
            for (const TurnstileInfo& info : snapshot_.tasks[task].turnstile_infos)
                add(task, info);
        for (std::size_t wait = 0; wait < graph_.waits.size(); ++wait)
            connect(graph_.waits[wait]);
        graph_.no_wait_infos = waiting != 0 && graph_.waits.empty();
        return std::move(graph_);
    }

  private:
    using Wait = WaitGraph::Wait;
    using Blocker = WaitGraph::Blocker;
    using Unknown = WaitGraph::Unknown;

    template <typename... Arguments>
    void contradiction(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        graph_.contradictions.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    void add(const TaskSnapshot& task) {
        const std::size_t index = graph_.tasks.size();
        graph_.tasks.push_back({.pid = task.pid, .snapshot = &task});
        // While a task is replaced or torn down, there can be two of one pid: the live one counts.
        const bool over = (task.ss_flags.value_or(0) & kTerminatedSnapshot) != 0;
        if (task.pid && !over)
            task_by_pid_[*task.pid] = index;
        else if (task.pid)
            task_by_pid_.try_emplace(*task.pid, index);
        for (const auto* threads : {&task.threads, &task.unchanged_threads})
            for (const ThreadSnapshot& thread : *threads) {
                const std::size_t added = graph_.threads.size();
                if (!graph_.thread_by_id.emplace(thread.id, added).second) {
                    contradiction("thread {} is in the capture twice", thread.id);
                    continue;
                }
                graph_.threads.push_back({.id = thread.id, .task = index, .snapshot = &thread});
                graph_.tasks[index].threads.push_back(added);
            }
    }

    void add(std::size_t task, const WaitInfo& info) {
        const std::size_t index = thread(info.waiter);
        WaitGraph::Thread& waiter = graph_.threads[index];
        if (waiter.wait != WaitGraph::none) {
            contradiction("thread {} has two wait infos: only the first counts", info.waiter);
            return;
        }
        if (waiter.task == WaitGraph::none) {
            waiter.task = task;
            contradiction("thread {} has a wait info, but is not in the capture", info.waiter);
        }
        waiter.wait = graph_.waits.size();
        graph_.waits.push_back({.thread = index,
                                .info = info,
                                .type = find_wait_type(info.wait_type),
                                .label = label(task, info.portlabel_id)});
    }

    void add(std::size_t task, const TurnstileInfo& info) {
        const std::size_t index = graph_.find_thread(info.waiter);
        if (index == WaitGraph::none || graph_.threads[index].wait == WaitGraph::none) {
            contradiction("thread {} has a turnstile info, but no wait info", info.waiter);
            return;
        }
        Wait& wait = graph_.waits[graph_.threads[index].wait];
        if (wait.turnstile) {
            contradiction("thread {} has two turnstile infos: only the first counts", info.waiter);
            return;
        }
        wait.turnstile = info;
        if (info.portlabel_id != wait.info.portlabel_id)
            wait.far_label = label(task, info.portlabel_id);
    }

    const PortLabel* label(std::size_t task, std::int16_t id) const {
        if (id <= STACKSHOT_PORTLABELID_NONE)
            return nullptr;
        for (const PortLabel& each : snapshot_.tasks[task].port_labels)
            if (each.id == id)
                return &each;
        return nullptr;
    }

    /// The thread with that id, of which there may be no more than that.
    std::size_t thread(std::uint64_t id) {
        const auto [found, is_new] = graph_.thread_by_id.try_emplace(id, graph_.threads.size());
        if (is_new)
            graph_.threads.push_back({.id = id});
        return found->second;
    }

    std::size_t task(std::int32_t pid) {
        const auto [found, is_new] = task_by_pid_.try_emplace(pid, graph_.tasks.size());
        if (is_new)
            graph_.tasks.push_back({.pid = pid});
        return found->second;
    }

    std::size_t object(const char* kind, std::uint64_t address, std::size_t task) {
        const auto [found, is_new] = objects_.try_emplace(
            std::tuple(std::string_view(kind), address, task), graph_.objects.size());
        if (is_new)
            graph_.objects.push_back({.kind = kind, .address = address, .task = task});
        return found->second;
    }

    std::size_t work_queue(std::uint64_t address) {
        const auto [found, is_new] = work_queues_.try_emplace(address, graph_.work_queues.size());
        if (is_new)
            graph_.work_queues.push_back({address});
        return found->second;
    }

    void block(Wait& wait, Blocker blocker, std::size_t by) {
        wait.blocker = blocker;
        wait.blocked_by = by;
        wait.unknown = Unknown::no;
    }

    void block_on_pid(Wait& wait, Blocker blocker, std::uint64_t pid) {
        if (pid > INT32_MAX)
            wait.unknown = Unknown::other_special;
        else
            block(wait, blocker, task(static_cast<std::int32_t>(pid)));
    }

    void connect(Wait& wait) {
        const std::size_t task = graph_.threads[wait.thread].task;
        if (wait.type != nullptr && *wait.type->object != '\0' && wait.info.context != 0) {
            wait.object = object(wait.type->object, wait.info.context,
                                 wait.type->per_task ? task : WaitGraph::none);
            if (wait.label != nullptr)
                graph_.objects[wait.object].label = wait.label;
        }
        const ThreadSnapshot* const waiter = graph_.threads[wait.thread].snapshot;
        if (waiter != nullptr && waiter->state && (*waiter->state & SS_TH_WAIT) == 0) {
            wait.unknown = Unknown::not_waiting;
            contradiction("thread {} has a wait info, but does not wait (state {:#x})",
                          wait.info.waiter, *waiter->state);
            return;
        }
        connect_owner(wait);
        if (wait.turnstile)
            connect_turnstile(wait);
    }

    void connect_owner(Wait& wait) {
        if (wait.type == nullptr) {
            wait.unknown = Unknown::unknown_type;
            return;
        }
        const std::uint64_t owner = wait.info.owner;
        if (wait.type->owner == WaitOwner::process) {
            connect_process(wait);
            return;
        }
        wait.unknown = special_owner(owner);
        if (wait.unknown == Unknown::port_locked || wait.unknown == Unknown::port_set_locked ||
            wait.unknown == Unknown::mutex_spin)
            wait.changing = true;
        if (wait.unknown != Unknown::no)
            return;
        const bool names_nobody =
            wait.type->owner == WaitOwner::none || wait.type->owner == WaitOwner::port_name;
        if (owner == 0 && !names_nobody) {
            wait.unknown = Unknown::not_recorded;
            return;
        }
        switch (wait.type->owner) {
            case WaitOwner::thread:
                block(wait, Blocker::thread, thread(owner));
                break;
            case WaitOwner::task:
                block_on_pid(wait, Blocker::task, owner);
                break;
            case WaitOwner::creator:
                block_on_pid(wait, Blocker::creator, owner);
                break;
            case WaitOwner::port:
                block(wait, Blocker::port, object(wait.type->object, owner, WaitGraph::none));
                break;
            case WaitOwner::none:
            case WaitOwner::port_name:
            case WaitOwner::process:
                break;
        }
    }

    /// wait4(): -1 is any child, 0 any child of the caller's process group, other negative ones
    /// those of that group.
    void connect_process(Wait& wait) {
        const auto pid = static_cast<std::int64_t>(wait.info.owner);
        if (pid == -1)
            wait.unknown = Unknown::any_child;
        else if (pid <= 0 || pid > INT32_MAX)
            wait.unknown = Unknown::process_group;
        else
            block(wait, Blocker::task, task(static_cast<std::int32_t>(pid)));
    }

    void connect_turnstile(Wait& wait) {
        const std::uint64_t flags = wait.turnstile->turnstile_flags;
        const std::uint64_t context = wait.turnstile->turnstile_context;
        if ((flags & (STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ |
                      STACKSHOT_TURNSTILE_STATUS_HELD_IPLOCK)) != 0) {
            wait.changing = true;
            return;
        }
        const bool to_thread = (flags & STACKSHOT_TURNSTILE_STATUS_THREAD) != 0 && context != 0;
        if (wait.blocker == Blocker::thread) {
            // Beyond the first hop it is another object's owner.
            if (to_thread && wait.turnstile->number_of_hops <= 1 &&
                context != graph_.threads[wait.blocked_by].id)
                wait.changing = true;
            return;
        }
        const bool names_nobody = wait.unknown == Unknown::no && wait.blocker == Blocker::none;
        if (!names_nobody && wait.unknown != Unknown::not_recorded &&
            wait.unknown != Unknown::unknown_type && wait.unknown != Unknown::thread_requested)
            return;
        if (to_thread)
            block(wait, Blocker::thread, thread(context));
        else if ((flags & STACKSHOT_TURNSTILE_STATUS_BLOCKED_ON_TASK) != 0)
            block_on_pid(wait, Blocker::task, context);
        else if ((flags & STACKSHOT_TURNSTILE_STATUS_WORKQUEUE) != 0)
            block(wait, Blocker::work_queue, work_queue(context));
        else
            return;
        wait.by_turnstile = wait.blocker != Blocker::none;
        wait.any_of_task = wait.blocker == Blocker::thread && wait.turnstile->number_of_hops > 1;
    }

    const Snapshot& snapshot_;
    WaitGraph graph_{};
    std::map<std::int32_t, std::size_t> task_by_pid_{};
    std::map<std::tuple<std::string_view, std::uint64_t, std::size_t>, std::size_t> objects_{};
    std::map<std::uint64_t, std::size_t> work_queues_{};
};

}  // namespace

const WaitType* find_wait_type(std::uint8_t type) {
    const auto* const found =
        std::find_if(std::begin(wait_types), std::end(wait_types),
                     [type](const WaitType& each) { return each.type == type; });
    return found == std::end(wait_types) ? nullptr : found;
}

bool WaitGraph::Thread::can_act() const {
    return snapshot != nullptr &&
           (snapshot->state.value_or(0) & (SS_TH_IDLE | SS_TH_TERMINATE | SS_TH_TERMINATE2)) == 0;
}

WaitGraph make_wait_graph(const Snapshot& snapshot) {
    return GraphBuilder(snapshot).run();
}

}  // namespace tools
