#pragma once

#include <cstdint>
#include <vector>

#include "tools/wait_graph.hpp"

namespace tools {

/// What is stuck in a capture, and on what. Numbers are indices into the WaitGraph.
///
/// A wait ends only by its blocker if that is a thread or a task (WaitGraph::Blocker). A thread is
/// stuck if its blocker is: a thread that is stuck, or a task of which every thread that can act is
/// stuck. A task with one thread that is not (it runs, sleeps, waits for a message, ...) may still
/// receive, so it is not. A request that is not received yet (WaitGraph::Wait::any_of_task) is one
/// to the task, too. Nothing is taken for stuck because of a thread or task that is not in the
/// capture, nor because of a task if parts of the capture are lost. What a semaphore waits for is
/// anybody, so no deadlock goes through one.
///
/// The records tell neither time-outs nor that a thread will be aborted: a wait with one may end.
struct Diagnosis {
    /// Threads that wait for each other: none of them can go on.
    struct Deadlock {
        /// Each waits for the next and the last for the first, if no task is between.
        std::vector<std::size_t> threads{};
        /// Other threads that can go on only when this is resolved.
        std::size_t behind = 0;
    };

    /// A cycle through tasks that could be broken: some thread of a task in it may yet act.
    struct OpenCycle {
        std::vector<std::size_t> threads{};
        /// Those that may act; empty: the capture lacks some.
        std::vector<std::size_t> may_act{};
    };

    /// The end of chains of waits.
    struct Head {
        enum class Kind : std::uint8_t { thread, task, work_queue } kind = Kind::thread;
        std::size_t index = 0;
        std::vector<std::size_t> direct{};  ///< threads that wait for it
        std::size_t behind = 0;             ///< these, and all that wait for them
    };

    /// A thread of lower base priority keeps one of higher waiting.
    struct Inversion {
        enum class Boost : std::uint8_t {
            none,     ///< it runs at its base priority
            partial,  ///< above that, but below the waiter's
            full,     ///< at the waiter's or above
            unknown,
        };
        std::size_t owner = 0;
        std::size_t waiter = 0;  ///< the one of highest base priority
        bool direct = false;     ///< nothing between them
        Boost boost = Boost::unknown;
        /// It could run, but does not: what the waiter waits for is a CPU.
        bool runnable = false;
    };

    std::vector<Deadlock> deadlocks{};
    std::vector<OpenCycle> open_cycles{};
    std::vector<Head> heads{};  ///< most threads behind first
    std::vector<Inversion> inversions{};
    /// By thread: the deadlock it is in, or none.
    std::vector<std::size_t> deadlock_of{};
};

Diagnosis diagnose(const WaitGraph& graph);

}  // namespace tools
