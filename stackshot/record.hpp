#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/format.hpp"
#include "kcdata/writer.hpp"
#include "stackshot/cycle_detector.hpp"
#include "stackshot/microseconds.hpp"
#include "stackshot/request.hpp"
#include "stackshot/system.hpp"
#include "stackshot/unwind.hpp"

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

/// A part of a task: its threads from `first` up to `end`, which is not in it. ThreadRef::none is
/// the beginning or the end of the list; the part with the beginning has the task's own records in
/// front of the threads, the part with the end those behind. The parts of a task, one behind the
/// other, are the bytes of the whole.
struct TaskPart {
    ThreadRef first = ThreadRef::none;
    ThreadRef end = ThreadRef::none;
};

/// The producers of task and thread records, for one CPU inside a trap. In what order and where to
/// the records go is the caller's affair.
class Recorder {
  public:
    /// `frames`: room for the return addresses of one walk.
    Recorder(System& system, Quiesced& quiesced, const Request& request, const Unwinder& unwinder,
             std::span<std::uint64_t> frames)
        : system_(system),
          quiesced_(quiesced),
          request_(request),
          unwinder_(unwinder),
          frames_(frames),
          absent_(system.absent_cpus(quiesced)),
          microseconds_(system.facts().timebase) {}

    /// Appends the container of `task` with all its threads, or `part` of it, or nothing if the
    /// request does not want the task. `recorded` says which. After an error a part of it may have
    /// been appended. KERN_FAILURE: the list of threads is corrupt, or does not lead from the
    /// part's first thread to its end.
    kcdata::kern_return record_task(kcdata::Writer& writer, TaskRef task, const TaskPart& part,
                                    bool& recorded);

    const Counts& counts() const { return counts_; }

  private:
    /// Threads of a task that a capture records, by how a delta records them.
    struct ThreadCounts {
        std::size_t changed = 0;
        std::size_t unchanged = 0;
    };

    kcdata::kern_return begin_task(kcdata::Writer& writer, const TaskFacts& facts);
    /// Calls visit() for each thread of `part`, whose first one is `first`, with its facts in
    /// thread_. Ends with the first error.
    template <typename Visit>
    kcdata::kern_return for_each_thread(const TaskPart& part, ThreadRef first, Visit visit);
    /// Whether the request wants nothing of the thread.
    bool leaves_out(const ThreadFacts& thread) const {
        return !thread.has_stack && request_.has(kcdata::STACKSHOT_ACTIVE_KERNEL_THREADS_ONLY);
    }
    /// The records of a task in front of its threads, but for what a delta has instead.
    kcdata::kern_return append_task_records(kcdata::Writer& writer, const TaskFacts& facts);
    static std::uint64_t recorded_flags(const TaskFacts& task);
    /// Appends the container of the thread whose facts are in thread_.
    kcdata::kern_return record_thread(kcdata::Writer& writer);

    // Deltas: what has not run since the request's timestamp is recorded shortly.
    bool is_unchanged(const ThreadFacts& thread) const;
    bool is_changed(const TaskFacts& task, const ThreadCounts& threads) const;
    kcdata::kern_return count_threads(const TaskFacts& task, ThreadCounts& counts);
    kcdata::kern_return append_task_delta_snapshot(kcdata::Writer& writer, const TaskFacts& task);
    /// KERN_ABORTED: they are not `count` any more.
    kcdata::kern_return append_unchanged_threads(kcdata::Writer& writer, const TaskFacts& task,
                                                 std::size_t count);

    System& system_;
    Quiesced& quiesced_;
    const Request& request_;
    const Unwinder& unwinder_;
    std::span<std::uint64_t> frames_;
    CpuMask absent_;
    Microseconds microseconds_;
    Counts counts_{};
    /// Of the thread that is being recorded.
    ThreadFacts thread_{};
};

template <typename Visit>
kcdata::kern_return Recorder::for_each_thread(const TaskPart& part, ThreadRef first, Visit visit) {
    CycleDetector<ThreadRef> circle;
    ThreadRef previous = ThreadRef::none;
    for (ThreadRef thread = first; thread != part.end; thread = thread_.next) {
        if (thread == ThreadRef::none || circle.step(thread))
            return kcdata::KERN_FAILURE;
        if (const kcdata::kern_return error = system_.thread_facts(quiesced_, thread, thread_);
            error != kcdata::KERN_SUCCESS)
            return error;
        // What lies in front of a part is not known.
        if (thread_.previous != previous && thread != part.first)
            return kcdata::KERN_FAILURE;
        if (const kcdata::kern_return error = visit(); error != kcdata::KERN_SUCCESS)
            return error;
        previous = thread;
    }
    return kcdata::KERN_SUCCESS;
}

/// What the records in front of the tasks say besides SystemFacts.
struct PreTaskFacts {
    std::uint32_t size_estimate = 0;  ///< bytes; 0: there was none, not recorded
    std::uint32_t size_estimate_adj = 0;
    std::uint64_t absolute_time = 0;
    std::uint64_t usecs_since_epoch = 0;
};
/// Bytes record_pre_task appends at most.
inline constexpr std::size_t record_pre_task_room = 2048;
/// Appends the system-wide records in front of the tasks. Inside the trap.
kcdata::kern_return record_pre_task(kcdata::Writer& writer, System& system, Quiesced& quiesced,
                                    const Request& request, const PreTaskFacts& facts);

/// What one CPU did, in absolute time and bytes.
struct CpuLatency {
    CpuIndex cpu = 0;
    std::uint32_t cluster = 0;
    ClusterType cluster_type = ClusterType::SMP;
    std::uint64_t init = 0;        ///< from preflight until it began to record
    std::uint64_t work_queue = 0;  ///< spent waiting for tasks
    std::uint64_t total = 0;       ///< from preflight until it was done
    Counts counts{};
    std::uint64_t buffer = 0;    ///< taken from the arena
    std::uint64_t borrowed = 0;  ///< thereof from other clusters
};
/// Appends how many tasks and threads there are in the capture. Any context.
kcdata::kern_return record_counts(kcdata::Writer& writer, const Counts& counts);
/// What the last records of a capture say.
struct PostTaskFacts {
    /// One for each CPU that took part.
    std::span<const CpuLatency> latencies{};
    std::uint64_t duration = 0;        ///< absolute time of the collection, barrier included
    std::uint64_t prior_duration = 0;  ///< absolute time of attempts that were too small
    std::uint32_t tries = 1;
};
/// Bytes record_counts and record_post_task append at most for so many CPUs.
std::size_t record_post_task_room(CpuIndex cpus);
/// Appends the last records: what the capture itself took, and its flags. Any context. Returns
/// where to store the outer duration (a u64 in absolute time, not aligned), once it is known.
kcdata::Result<std::span<std::byte>> record_post_task(kcdata::Writer& writer,
                                                      const Request& request,
                                                      const PostTaskFacts& facts);

}  // namespace stackshot
