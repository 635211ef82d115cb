#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/records.hpp"
#include "kcdata/writer.hpp"
#include "stackshot/collection_memory.hpp"
#include "stackshot/cycle_detector.hpp"
#include "stackshot/latency.hpp"
#include "stackshot/microseconds.hpp"
#include "stackshot/port_label.hpp"
#include "stackshot/record_task_end.hpp"
#include "stackshot/request.hpp"
#include "stackshot/stopwatch.hpp"
#include "stackshot/system.hpp"
#include "stackshot/task_part.hpp"
#include "stackshot/unwind.hpp"
#include "stackshot/wait_log.hpp"

namespace stackshot {

/// The producers of task and thread records, for one CPU inside a trap. In what order and where to
/// the records go is the caller's affair.
class Recorder {
  public:
    /// `frames`: room for the return addresses of one walk. `memory`: for what is recorded behind a
    /// task's threads.
    Recorder(System& system, Quiesced& quiesced, const Request& request, const Unwinder& unwinder,
             std::span<std::uint64_t> frames, CollectionMemory& memory)
        : system_(system),
          quiesced_(quiesced),
          request_(request),
          unwinder_(unwinder),
          frames_(frames),
          memory_(memory),
          waits_(memory),
          labels_(memory),
          absent_(system.absent_cpus(quiesced)),
          high_water_(system.facts().tunables.stack_high_water ||
                      request.has(kcdata::STACKSHOT_FROM_PANIC)),
          has_details_(high_water_ || request.has(kcdata::STACKSHOT_THREAD_GROUP |
                                                  kcdata::STACKSHOT_INSTRS_CYCLES)),
          microseconds_(system.facts().timebase) {}

    /// Appends the container of `task` with all its threads, or `part` of it, but for what
    /// record_task_end() records of all parts; or nothing if the request does not want the task.
    /// After an error a part of it may have been appended. KERN_FAILURE: the list of threads is
    /// corrupt, or does not lead from the part's first thread to its end.
    kcdata::kern_return record_task(kcdata::Writer& writer, TaskRef task, const TaskPart& part,
                                    RecordedTask& recorded);

    /// What was recorded of all tasks is used: x.
    void rewind() { waits_.rewind(); }

    const Counts& counts() const { return counts_; }

  private:
    /// Threads of a task that a capture records, by how a delta records them.
    struct ThreadCounts {
        std::size_t changed = 0;
        std::size_t unchanged = 0;
    };

    kcdata::kern_return begin_task(kcdata::Writer& writer, const TaskFacts& facts,
                                   Stopwatch& stopwatch, TaskLatency& latency);
    /// Calls visit() with each thread of `part`, whose first one is `first`, and its facts in
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
    /// Appends the container of the thread whose facts are in thread_; `stopwatch` has run since
    /// the thread before.
    kcdata::kern_return record_thread(kcdata::Writer& writer, Stopwatch& stopwatch);
    /// Of a thread or a task, if it has done any.
    kcdata::kern_return record_io(kcdata::Writer& writer, IoStatisticsRef statistics);
    kcdata::kern_return record_counters(kcdata::Writer& writer, const TaskFacts& task);
    /// The records that only some threads or captures have.
    kcdata::kern_return record_thread_details(kcdata::Writer& writer);
    kcdata::kern_return record_dispatch_queue(kcdata::Writer& writer,
                                              kcdata::thread_snapshot_v4& snapshot);
    /// Adds what that thread waits for, if it does, to waits_.
    kcdata::kern_return record_wait(ThreadRef thread, RecordedTask& recorded);
    kcdata::kern_return find_labels(ThreadWait& wait, RecordedTask& recorded);
    /// Takes down whom the task donates importance to.
    kcdata::kern_return find_donating_pids(TaskRef task, RecordedTask& recorded);
    kcdata::kern_return record_stack(kcdata::Writer& writer, std::uint64_t& ss_flags);

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
    CollectionMemory& memory_;
    WaitLog waits_;
    PortLabelLog labels_;
    CpuMask absent_;
    bool high_water_;
    bool has_details_;  ///< every thread
    Microseconds microseconds_;
    Counts counts_{};
    /// Of the task that is being recorded: its threads may have dispatch queues.
    bool user_task_ = false;
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
        if (const kcdata::kern_return error = visit(thread); error != kcdata::KERN_SUCCESS)
            return traced(system_, error);
        previous = thread;
    }
    return kcdata::KERN_SUCCESS;
}

}  // namespace stackshot
