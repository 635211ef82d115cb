#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/snapshot.hpp"

namespace tools {

/// What the owner field of a wait info is.
enum class WaitOwner : std::uint8_t {
    none,       ///< nothing: anybody may end the wait
    thread,     ///< the id of the thread that has to act
    task,       ///< the pid of the task whose threads have to
    creator,    ///< the pid of a task that is only where the thing comes from
    process,    ///< the pid that wait4() was told: may be any child, or a process group
    port,       ///< the address of the port that the other one is in transit to
    port_name,  ///< the name of the port in the waiter's task
};

/// One of kThreadWait*, and how it is told: "thread A WAITS OBJECT 0x... JOINT thread B".
struct WaitType {
    std::uint8_t type;
    WaitOwner owner;
    bool per_task;       ///< its context is a number of the waiter's task, not of the kernel
    const char* waits;   ///< "waits for"
    const char* object;  ///< "mutex"; empty: there is none
    const char* joint;   ///< "held by"; empty: nobody is told
};
/// nullptr: not a type we know.
const WaitType* find_wait_type(std::uint8_t type);

/// Who waits for whom in one stackshot: thread -> object -> the thread or task that must act. A
/// thread waits for one thing at most, so behind each there is one chain, unless a task with
/// several threads is in it.
///
/// The edge comes from the owner in the wait info; where that names nobody, from the turnstile
/// info. The same wait told by both is one edge. An owner that is none (STACKSHOT_WAITOWNER_*), was
/// locked or is not recorded makes no edge, but an Unknown.
///
/// Numbers that are no ids are indices into the vectors. Points into the Snapshot, which lives
/// longer.
struct WaitGraph {
    static constexpr std::size_t none = SIZE_MAX;

    struct Thread {
        std::uint64_t id = 0;
        std::size_t task = none;                   ///< none: not known
        const ThreadSnapshot* snapshot = nullptr;  ///< nullptr: not in the capture
        std::size_t wait = none;

        /// Whether it can ever act for somebody else: it is in the capture, and neither an idle
        /// thread nor terminating.
        bool can_act() const;
    };

    struct Task {
        std::optional<std::int32_t> pid{};
        const TaskSnapshot* snapshot = nullptr;  ///< nullptr: not in the capture
        std::vector<std::size_t> threads{};
    };

    /// Something with an address or id.
    struct Object {
        const char* kind = "";  ///< WaitType::object
        std::uint64_t address = 0;
        std::size_t task = none;           ///< the address is one of this task's
        const PortLabel* label = nullptr;  ///< of a port that has one
    };

    struct WorkQueue {
        std::uint64_t address = 0;
    };

    /// What must act before the wait ends.
    enum class Blocker : std::uint8_t {
        none,        ///< nothing that is known
        thread,      ///< this thread
        task,        ///< some thread of this task
        creator,     ///< as task, but others may end the wait as well
        work_queue,  ///< a thread that is not there yet
        port,        ///< the port that what is waited for is in transit to; an object
    };

    /// Why there is no blocker.
    enum class Unknown : std::uint8_t {
        no,                ///< there is one, or the type of wait has none
        not_recorded,      ///< the owner is 0
        kernel,            ///< STACKSHOT_WAITOWNER_KERNEL
        port_locked,       ///< STACKSHOT_WAITOWNER_PORT_LOCKED
        port_set_locked,   ///< STACKSHOT_WAITOWNER_PSET_LOCKED
        in_transit,        ///< STACKSHOT_WAITOWNER_INTRANSIT
        mutex_spin,        ///< STACKSHOT_WAITOWNER_MTXSPIN
        thread_requested,  ///< STACKSHOT_WAITOWNER_THREQUESTED
        suspended,         ///< STACKSHOT_WAITOWNER_SUSPENDED
        other_special,     ///< a value of that range that has no meaning yet
        any_child,
        process_group,
        unknown_type,
        not_waiting,  ///< the thread's state says that it does not wait
    };

    struct Wait {
        std::size_t thread = none;
        WaitInfo info{};
        std::optional<TurnstileInfo> turnstile{};
        const WaitType* type = nullptr;
        std::size_t object = none;
        Blocker blocker = Blocker::none;
        std::size_t blocked_by = none;  ///< a thread, task, work queue or object, by `blocker`
        bool by_turnstile = false;      ///< the turnstile info told the blocker
        /// The turnstile came to the thread through another one, of a port or work loop whose
        /// messages wait to be received: another thread of the same task may do that.
        bool any_of_task = false;
        /// The capture caught the object while its owner changed: its queue or port was locked, or
        /// lock and turnstile name different threads.
        bool changing = false;
        Unknown unknown = Unknown::no;
        const PortLabel* label = nullptr;      ///< of the port that is waited for
        const PortLabel* far_label = nullptr;  ///< of the last port that the turnstile passed
    };

    std::vector<Thread> threads{};
    std::vector<Task> tasks{};
    std::vector<Object> objects{};
    std::vector<WorkQueue> work_queues{};
    std::vector<Wait> waits{};
    /// All of the capture could be read: a thread that is not here is none.
    bool complete = true;
    /// There are waiting threads, and no record tells what any of them waits for.
    bool no_wait_infos = false;
    /// Records that contradict others or the rest of the capture, in words.
    std::vector<std::string> contradictions{};

    /// The wait of a thread, or nullptr.
    const Wait* wait_of(std::size_t thread) const {
        return threads[thread].wait == none ? nullptr : &waits[threads[thread].wait];
    }
    /// The thread with that id; none if nothing tells of it.
    std::size_t find_thread(std::uint64_t id) const {
        const auto found = thread_by_id.find(id);
        return found == thread_by_id.end() ? none : found->second;
    }
    std::unordered_map<std::uint64_t, std::size_t> thread_by_id{};
};

WaitGraph make_wait_graph(const Snapshot& snapshot);

}  // namespace tools
