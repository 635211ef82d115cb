#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"
#include "kcdata/writer.hpp"
#include "stackshot/arena.hpp"
#include "stackshot/atomic.hpp"
#include "stackshot/capture_state.hpp"
#include "stackshot/chunk_chain.hpp"
#include "stackshot/cycle_detector.hpp"
#include "stackshot/estimate.hpp"
#include "stackshot/record.hpp"
#include "stackshot/request.hpp"
#include "stackshot/system.hpp"
#include "stackshot/unwind.hpp"
#include "stackshot/work_queue.hpp"

namespace stackshot {

enum class Mode : std::uint8_t {
    single_threaded,  ///< the initiator writes all records into one buffer
    parallel,         ///< all CPUs that stopped take tasks from queues, a chain of chunks for each
};
/// Preflight: parallel, unless a boot argument forbids it, or the capture is of one task only, of
/// page tables, or of a panic, when no other CPU can be relied on.
Mode select_mode(const SystemFacts& facts, const Request& request);

/// One collection of the stopped system's records, into memory prepared before. The three
/// functions of a TrapBody run it inside a trap; the results are read after it. A collection is run
/// once.
class Collection {
  public:
    /// `memory`: 64-byte aligned, at least as long as the collection; its contents do not matter.
    /// `system` and `memory` outlive the collection.
    Collection(System& system, const Request& request, const Estimate& estimate, Mode mode,
               std::span<std::byte> memory);
    Collection(const Collection&) = delete;
    Collection& operator=(const Collection&) = delete;

    // Inside the trap; see TrapBody. initiator() returns when every CPU is done, and does not
    // return if one is not in time: see System::workers_overdue. Neither returns after a panic:
    // see System::spin_for_panic.
    void cpu_preflight(CpuIndex cpu);
    void initiator(Quiesced& quiesced);
    void auxiliary(Quiesced& quiesced);

    // On a CPU that panics, wherever it is.
    /// Ends the collection for good, if it is active, and this CPU's part in it.
    void panic(CpuIndex cpu);
    /// CPUs that take part and have not left, but for those that were waited for in vain already.
    CpuMask working() const;

    // After the trap.
    /// Ends the collection, once, and tells how it went: the first error of any CPU.
    /// KERN_INSUFFICIENT_BUFFER_SIZE: the memory was too small. KERN_FAILURE: the system's lists
    /// are corrupt, or the trap did not run it.
    kcdata::kern_return conclude();
    const Request& request() const { return request_; }
    Mode mode() const { return mode_; }
    std::span<std::byte> memory() const { return memory_; }
    CpuMask workers() const { return participants_.load(std::memory_order_relaxed); }
    CpuMask absent() const { return absent_; }
    const Counts& counts() const { return counts_; }
    /// Absolute time from the start of the walk to the end of the barrier.
    std::uint64_t duration() const { return end_time_ - begin_time_; }
    const CollectionLatency& latency() const { return latency_; }
    /// What each worker did, lowest CPU first.
    std::span<const CpuLatency> latencies() const {
        return std::span(latencies_).first(latency_count_);
    }

    /// Mode::single_threaded: the writer behind the last task, for the records that follow.
    kcdata::Writer& single_writer() { return single_writer_; }
    /// Mode::parallel: the chains, in output order.
    const Chunk* pre_task_records() const { return pre_task_; }
    std::span<WorkItem> items() { return queues_.items(); }
    const Chunk* post_task_records() const { return post_task_; }
    /// For the tasks' ends.
    PortLabelTable& port_labels() { return port_labels_; }

  private:
    /// What belongs to one CPU; nobody else writes it while the collection runs.
    struct alignas(64) PerCpu {
        Atomic<bool> preflighted{false};
        std::uint64_t preflight_time = 0;
        CpuCounters counters{};  ///< at the beginning
        std::span<std::uint64_t> frames{};
        CpuLatency latency{};
    };

    kcdata::kern_return set_up(Quiesced& quiesced);
    kcdata::kern_return set_up_single_threaded(Quiesced& quiesced);
    kcdata::kern_return set_up_parallel();
    CpuIndex choose_main(CpuIndex self) const;
    void collect(Quiesced& quiesced);
    void leave(CpuIndex cpu);
    void wait_for_workers(Quiesced& quiesced);
    kcdata::kern_return collect_single_threaded(Quiesced& quiesced, PerCpu& own);
    kcdata::kern_return collect_in_parallel(Quiesced& quiesced, PerCpu& own);
    kcdata::kern_return fill_queues(Quiesced& quiesced, ChunkChain& chain);
    kcdata::kern_return push_task(Quiesced& quiesced, TaskRef task);
    kcdata::kern_return push(TaskRef task, const TaskPart& part, std::size_t threads);
    kcdata::kern_return work_on_queues(Recorder& recorder, ChunkChain& chain, PerCpu& own);
    kcdata::kern_return record_system(kcdata::Writer& writer, Quiesced& quiesced);
    /// Notes what the records behind the tasks depend on.
    kcdata::kern_return look_at_task(Quiesced& quiesced, TaskRef task);
    kcdata::kern_return record_behind_tasks(kcdata::Writer& writer, Quiesced& quiesced);
    /// The task behind `task`, none at the end; KERN_FAILURE if the list runs in a circle.
    kcdata::Result<TaskRef> next_task(Quiesced& quiesced, CycleDetector<TaskRef>& circle,
                                      TaskRef task);

    System& system_;
    Request request_;
    Estimate estimate_;
    Mode mode_;
    std::span<std::byte> memory_;
    Unwinder unwinder_;

    CaptureState state_{};
    /// CPUs that take part: the initiator, and before SETUP ends all others too.
    Atomic<CpuMask> participants_{0};
    /// CPUs that have left; those that take part and have not, work.
    Atomic<CpuMask> left_{0};
    /// What System::workers_overdue was told: a panic does not wait for them once more.
    Atomic<CpuMask> overdue_{0};
    /// The CPU that records the system and finds the tasks. Set in SETUP.
    Published<CpuIndex> main_ = no_cpu;
    CpuMask absent_ = 0;

    std::uint64_t usecs_since_epoch_ = 0;
    std::uint64_t begin_time_ = 0;
    std::uint64_t end_time_ = 0;
    CollectionLatency latency_{};
    // The main CPU's.
    Published<std::uint64_t> task_iteration_ = 0;
    Published<std::uint64_t> queue_building_ = 0;

    kcdata::Writer single_writer_{};
    Arena arena_{};
    WorkQueues queues_{};
    std::size_t extra_parts_ = 0;  ///< that tasks may yet be cut into; the main CPU's
    Published<Chunk*> pre_task_ = nullptr;
    Published<Chunk*> post_task_ = nullptr;
    bool newer_task_ = false;  ///< than a delta's timestamp; the main CPU's
    PortLabelTable port_labels_{};
    std::array<PerCpu, max_cpus> cpus_{};

    // Filled at the conclusion.
    Counts counts_{};
    std::array<CpuLatency, max_cpus> latencies_{};
    std::size_t latency_count_ = 0;
};

/// Runs collections one after the other inside one trap, all of the same frozen world.
class CaptureTrap final : public TrapBody {
  public:
    /// `collections` and what they point to outlive the trap.
    explicit CaptureTrap(std::span<Collection* const> collections) : collections_(collections) {}

    void cpu_preflight(CpuIndex cpu) override;
    void initiator(Quiesced& quiesced) override;
    void auxiliary(Quiesced& quiesced) override;
    void panic(CpuIndex cpu) override;
    CpuMask working() const override;

  private:
    std::span<Collection* const> collections_;
};

}  // namespace stackshot
