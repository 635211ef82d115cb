#pragma once

#include <cstddef>
#include <cstdint>

#include "stackshot/system.hpp"

namespace stackshot {

/// What one CPU recorded.
struct Counts {
    std::uint64_t tasks = 0, threads = 0, frames = 0;

    Counts& operator+=(const Counts& other) {
        tasks += other.tasks;
        threads += other.threads;
        frames += other.frames;
        return *this;
    }
};

/// Where the time of recording a task, or a part of it, went, in absolute time.
struct TaskLatency {
    std::uint64_t setup = 0;     ///< until its facts were there
    std::uint64_t count = 0;     ///< for counting the threads, as a delta does
    std::uint64_t snapshot = 0;  ///< for what lies in front of the threads
    std::uint64_t threads = 0;

    TaskLatency& operator+=(const TaskLatency& other) {
        setup += other.setup;
        count += other.count;
        snapshot += other.snapshot;
        threads += other.threads;
        return *this;
    }
};

/// What one CPU did, in absolute time and bytes.
struct CpuLatency {
    CpuIndex cpu = 0;
    std::uint32_t cluster = 0;
    ClusterType cluster_type = ClusterType::SMP;
    std::uint64_t init = 0;        ///< from preflight until it began to record
    std::uint64_t work_queue = 0;  ///< spent waiting for tasks
    std::uint64_t total = 0;       ///< from preflight until it was done
    CpuCounters counters{};        ///< in the same time
    Counts counts{};
    std::uint64_t buffer = 0;    ///< taken from the arena
    std::uint64_t borrowed = 0;  ///< thereof from other clusters
};
/// Where the time and memory of a collection went, in absolute time and bytes.
struct CollectionLatency {
    std::uint64_t setup = 0;           ///< from the stop until the collection ran
    std::uint64_t task_iteration = 0;  ///< the main CPU's way through the tasks, records included
    /// Thereof until the queues were populated; 0 without queues.
    std::uint64_t queue_building = 0;
    std::uint64_t cpu_wait = 0;  ///< the initiator's wait for the other CPUs
    CpuIndex main_cpu = 0;
    CpuIndex calling_cpu = 0;
    std::size_t buffer_size = 0;
    std::size_t buffer_used = 0;      ///< of it, by the records and everything else
    std::size_t buffer_overhead = 0;  ///< thereof given back, and not used again
    std::size_t buffer_count = 0;     ///< pieces it was cut into
};

}  // namespace stackshot
