#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/records.hpp"
#include "kcdata/writer.hpp"
#include "stackshot/cycle_detector.hpp"
#include "stackshot/microseconds.hpp"
#include "stackshot/request.hpp"
#include "stackshot/stopwatch.hpp"
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

/// Where the time of recording a task, or a part of it, went, in absolute time.
struct TaskLatency {
    std::uint64_t setup = 0;     ///< until its facts were there
    std::uint64_t count = 0;     ///< for counting the threads, as a delta does
    std::uint64_t snapshot = 0;  ///< for what lies in front of the threads
    std::uint64_t threads = 0;
    /// Where a task's last part has room for what all of them took together; nullptr in others, and
    /// if the request does not want to know.
    kcdata::stackshot_latency_task* record = nullptr;

    TaskLatency& operator+=(const TaskLatency& other) {
        setup += other.setup;
        count += other.count;
        snapshot += other.snapshot;
        threads += other.threads;
        return *this;
    }
};
/// Writes what a task took into `record`.
void fill(kcdata::stackshot_latency_task& record, const TaskLatency& latency);

/// What became of a task, or a part of it.
struct RecordedTask {
    /// False: the request does not want it, and nothing was appended.
    bool wanted = false;
    TaskLatency latency{};
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
    /// request does not want the task. After an error a part of it may have been appended.
    /// KERN_FAILURE: the list of threads is corrupt, or does not lead from the part's first thread
    /// to its end. A part's latencies are not yet in the record of its task.
    kcdata::kern_return record_task(kcdata::Writer& writer, TaskRef task, const TaskPart& part,
                                    RecordedTask& recorded);

    const Counts& counts() const { return counts_; }

  private:
    /// Threads of a task that a capture records, by how a delta records them.
    struct ThreadCounts {
        std::size_t changed = 0;
        std::size_t unchanged = 0;
    };

    kcdata::kern_return begin_task(kcdata::Writer& writer, const TaskFacts& facts,
                                   Stopwatch& stopwatch, TaskLatency& latency);
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
    kcdata::kern_return end_task(kcdata::Writer& writer, const TaskFacts& facts,
                                 TaskLatency& latency);
    /// Appends the container of the thread whose facts are in thread_; `stopwatch` has run since
    /// the thread before.
    kcdata::kern_return record_thread(kcdata::Writer& writer, Stopwatch& stopwatch);
    kcdata::kern_return record_stack(kcdata::Writer& writer, std::uint64_t& ss_flags);
    bool wants_latencies() const { return !request_.has(kcdata::STACKSHOT_DISABLE_LATENCY_INFO); }

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
            return traced(system_, kcdata::KERN_FAILURE);
        if (const kcdata::kern_return error = system_.thread_facts(quiesced_, thread, thread_);
            error != kcdata::KERN_SUCCESS)
            return traced(system_, error);
        // What lies in front of a part is not known.
        if (thread_.previous != previous && thread != part.first)
            return traced(system_, kcdata::KERN_FAILURE);
        if (const kcdata::kern_return error = visit(); error != kcdata::KERN_SUCCESS)
            return traced(system_, error);
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
    CpuCounters counters{};        ///< in the same time
    Counts counts{};
    std::uint64_t buffer = 0;    ///< taken from the arena
    std::uint64_t borrowed = 0;  ///< thereof from other clusters
};
/// Where the time and memory of a collection went, in absolute time and bytes.
struct CollectionLatency {
    std::uint64_t setup = 0;           ///< from the stop until the collection ran
    std::uint64_t task_iteration = 0;  ///< the main CPU's way through the tasks, records included
    std::uint64_t queue_building =
        0;                       ///< thereof until the queues were populated; 0 without queues
    std::uint64_t cpu_wait = 0;  ///< the initiator's wait for the other CPUs
    CpuIndex main_cpu = 0;
    CpuIndex calling_cpu = 0;
    std::size_t buffer_size = 0;
    std::size_t buffer_used = 0;      ///< of it, by the records and everything else
    std::size_t buffer_overhead = 0;  ///< thereof given back, and not used again
    std::size_t buffer_count = 0;     ///< pieces it was cut into
};
/// Appends how many tasks and threads there are in the capture. Any context.
kcdata::kern_return record_counts(kcdata::Writer& writer, const Counts& counts);
/// What the last records of a capture say.
struct PostTaskFacts {
    CollectionLatency latency{};
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
