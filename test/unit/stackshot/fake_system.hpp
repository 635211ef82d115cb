#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stackshot/system.hpp"

/// A system made of host threads as CPUs, tasks and threads in vectors, and stacks in a map. A test
/// fills in the public members, then runs captures; nothing may be changed during one.
class FakeSystem : public stackshot::System {
  public:
    struct Thread {
        stackshot::ThreadFacts facts{};
        stackshot::StackFacts stack{};
        kcdata::kern_return facts_result = kcdata::KERN_SUCCESS;
        kcdata::kern_return stack_result = kcdata::KERN_SUCCESS;
        /// What it waits for; nothing: the format has no type for it, if it waits.
        std::optional<stackshot::WaitFacts> wait{};
        /// The right answer of a stack walk.
        std::vector<std::uint64_t> expected_frames{};
    };
    struct Task {
        stackshot::TaskFacts facts{};
        std::vector<Thread> threads{};
        kcdata::kern_return facts_result = kcdata::KERN_SUCCESS;
        std::vector<std::int32_t> donating_pids{};
    };

    explicit FakeSystem(stackshot::CpuIndex cpus, std::uint32_t clusters = 1);
    virtual ~FakeSystem();

    /// Makes the calling host thread the CPU of this number.
    static void become_cpu(stackshot::CpuIndex cpu);
    /// The CPU the calling host thread is.
    static stackshot::CpuIndex this_cpu();

    /// Adds a task with `threads` threads, blocked ones and running ones, whose stacks are `depth`
    /// deep. Ids follow from how many there are already; no two numbers in its facts and its
    /// threads' are equal, except for states and CPUs.
    Task& add_task(const std::string& name, std::size_t threads, std::size_t depth);
    /// Adds tasks of 0 to 10 threads with stacks of all depths; the first one is the kernel's.
    void add_tasks(std::size_t count);
    /// Gives `thread` a blocked stack of its own, `depth` return addresses deep.
    void make_stack(Thread& thread, std::size_t depth);
    /// Makes `count` words at `address` readable.
    void map(std::uint64_t address, std::size_t count);
    std::uint64_t& word(std::uint64_t address);
    void unmap(std::uint64_t address);

    stackshot::SystemFacts constant{};
    std::vector<Task> tasks{};
    /// What can be read, by what names it.
    std::map<stackshot::PortLabelRef, stackshot::PortLabelFacts> port_labels{};
    std::map<stackshot::DispatchQueueRef, stackshot::DispatchQueueFacts> dispatch_queues{};
    std::map<stackshot::IoStatisticsRef, kcdata::io_stats_snapshot> io{};
    std::vector<stackshot::ThreadGroupFacts> thread_groups{};
    std::vector<stackshot::CoalitionFacts> coalitions{};
    /// By the lowest address of the stack.
    std::map<std::uint64_t, std::uint32_t> high_waters{};
    /// How often a port label was read.
    std::atomic<std::size_t> port_labels_read{0};
    /// Of which kind and in which cluster the CPUs are, if not evenly spread over SMP clusters.
    std::vector<std::uint32_t> cluster_of_cpu{};
    /// CPUs that answer no stop.
    stackshot::CpuMask absent = 0;
    /// Absent CPUs preflight all the same, but too late.
    bool absent_preflight = false;
    std::vector<std::byte> unwind_table{};
    std::uint64_t unwind_table_address = 0;
    /// What memory from allocate() is filled with.
    std::byte fill{0xaa};
    /// The n-th allocation from now on fails, counted from 1; 0: none does.
    std::size_t failing_allocation = 0;
    /// The same for everything that is read of the system inside a trap: lists, facts and words.
    std::atomic<std::size_t> failing_read{0};
    /// Instead of the walk through `tasks`, if set. Called on the CPUs of the capture.
    std::function<kcdata::Result<stackshot::TaskRef>(stackshot::TaskRef)> next_task_hook{};
    std::function<kcdata::Result<stackshot::ThreadRef>(stackshot::TaskRef, stackshot::ThreadRef)>
        next_thread_hook{};
    std::function<void(stackshot::TaskRef)> task_facts_hook{};
    std::function<bool(std::uint64_t, std::uint64_t, stackshot::Registers&)> exception_hook{};
    /// How long a wait without a signal goes on before it ends on its own.
    std::chrono::milliseconds event_stream_period{5000};
    /// Called at the start of each trap, before the world stops.
    std::function<void()> trap_hook{};

    std::size_t live_allocations() const { return allocations_.size(); }
    /// Bytes allocated, now and at the most.
    std::size_t live_bytes() const { return live_bytes_; }
    std::size_t peak_bytes() const { return peak_bytes_; }
    std::size_t traps() const { return traps_; }
    bool in_trap() const { return in_trap_; }
    /// What prepare_scratch() answers; what it prepared and nobody released.
    kcdata::kern_return scratch_result = kcdata::KERN_SUCCESS;
    int live_scratch() const { return live_scratch_; }
    bool locked() const { return locked_; }
    /// Waits that no signal ended: each costs a real CPU a period of the event stream, or hangs it.
    std::size_t missed_signals() const { return missed_signals_; }
    /// What workers_overdue() was called with; 0: it was not.
    stackshot::CpuMask overdue() const { return overdue_; }
    /// CPUs other than the caller of trap() that wait for an event right now.
    std::size_t waiting_auxiliaries() const { return waiting_auxiliaries_; }

    const stackshot::SystemFacts& facts() const override { return constant; }
    std::size_t task_count() override { return tasks.size(); }
    std::size_t thread_count() override;
    std::span<std::byte> allocate(std::size_t size) override;
    void free(std::span<std::byte> memory) override;
    kcdata::kern_return prepare_scratch() override;
    void release_scratch() override;
    void lock() override;
    bool try_lock() override;
    void unlock() override;
    stackshot::TrapOutcome trap(stackshot::TrapBody& body) override;
    std::uint64_t absolute_time() const override;
    std::uint64_t microseconds_since_epoch() const override;
    std::uint32_t cluster_of(stackshot::CpuIndex cpu) const override;
    void wait_for_event() override;
    void signal_event() override;
    void trace(stackshot::TraceEvent event, std::uint64_t word, const char* file,
               std::uint32_t line) override;
    /// Of the CPU: counts each call.
    stackshot::CpuCounters counters(stackshot::Quiesced& quiesced) override;
    kcdata::Result<stackshot::TaskRef> next_task(stackshot::Quiesced&,
                                                 stackshot::TaskRef previous) override;
    kcdata::Result<stackshot::ThreadRef> skip_threads(stackshot::Quiesced&, stackshot::TaskRef task,
                                                      stackshot::ThreadRef previous,
                                                      std::size_t count) override;
    kcdata::Result<std::size_t> task_thread_count(stackshot::Quiesced&,
                                                  stackshot::TaskRef task) override;
    kcdata::kern_return task_facts(stackshot::Quiesced&, stackshot::TaskRef task,
                                   stackshot::TaskFacts& facts) override;
    kcdata::kern_return thread_facts(stackshot::Quiesced&, stackshot::ThreadRef thread,
                                     stackshot::ThreadFacts& facts) override;
    bool wait_facts(stackshot::Quiesced&, stackshot::ThreadRef thread,
                    const stackshot::BlockedThread& blocked, stackshot::WaitFacts& facts) override;
    void port_label_facts(stackshot::Quiesced&, stackshot::PortLabelRef label,
                          stackshot::PortLabelFacts& facts) override;
    bool dispatch_queue_facts(stackshot::Quiesced&, stackshot::DispatchQueueRef queue,
                              stackshot::DispatchQueueFacts& facts) override;
    bool io_statistics(stackshot::Quiesced&, stackshot::IoStatisticsRef statistics,
                       kcdata::io_stats_snapshot& snapshot) override;
    kcdata::Result<stackshot::ThreadGroupRef> next_thread_group(
        stackshot::Quiesced&, stackshot::ThreadGroupRef previous,
        stackshot::ThreadGroupFacts& facts) override;
    kcdata::Result<stackshot::CoalitionRef> next_coalition(
        stackshot::Quiesced&, stackshot::CoalitionRef previous,
        stackshot::CoalitionFacts& facts) override;
    std::size_t donating_pids(stackshot::Quiesced&, stackshot::TaskRef task,
                              std::span<std::int32_t> pids) override;
    std::uint32_t stack_high_water(stackshot::Quiesced&,
                                   const stackshot::StackFacts& stack) override;
    stackshot::MemoryFacts memory_facts(stackshot::Quiesced&) override;
    stackshot::CpuMask absent_cpus(stackshot::Quiesced&) override { return absent; }
    /// Leaves the trap of the caller, once all CPUs are out of it, by a WorkersOverdue.
    [[noreturn]] void workers_overdue(stackshot::Quiesced&, stackshot::CpuMask cpus) override;
    /// Leaves the trap on the calling CPU; the caller of trap() by a PanicSpin.
    [[noreturn]] void spin_for_panic(stackshot::Quiesced&) override;
    bool read_words(stackshot::Quiesced&, std::uint64_t address,
                    std::span<std::uint64_t> words) override;
    stackshot::Followed follow_frame_records(stackshot::Quiesced&, stackshot::FrameChain& chain,
                                             std::span<std::uint64_t> return_addresses) override;
    bool interrupted_registers(stackshot::Quiesced&, std::uint64_t return_address,
                               std::uint64_t frame_pointer,
                               stackshot::Registers& registers) override;
    std::span<const std::byte> unwind_tables(std::uint64_t& address) const override;

    static stackshot::TaskRef task_ref(std::size_t index) { return stackshot::TaskRef{index + 1}; }
    static stackshot::ThreadRef thread_ref(std::size_t task, std::size_t index) {
        return stackshot::ThreadRef{(std::uint64_t{task} + 1) << 32 | (index + 1)};
    }

    /// What was traced on `cpu`, oldest first.
    std::vector<stackshot::TraceEntry> traced(stackshot::CpuIndex cpu) const;

    struct WorkersOverdue {};
    struct PanicSpin {};

  private:
    const Thread& thread_of(stackshot::ThreadRef thread) const;
    kcdata::Result<stackshot::ThreadRef> next_thread(stackshot::TaskRef task,
                                                     stackshot::ThreadRef previous);
    bool read_fails();

    std::map<std::uint64_t, std::uint64_t> memory_{};
    std::map<std::byte*, std::size_t> allocations_{};
    std::size_t live_bytes_ = 0;
    std::size_t peak_bytes_ = 0;
    std::size_t traps_ = 0;
    std::atomic<bool> in_trap_{false};
    int live_scratch_ = 0;
    std::uint64_t next_stack_ = 0xffff'0000'1000'0000;
    std::uint64_t next_id_ = 1;
    std::uint32_t next_fact_ = 1'000'000;
    bool locked_ = false;
    mutable std::atomic<std::uint64_t> time_{1'000'000};
    std::array<std::atomic<bool>, stackshot::max_cpus> events_{};
    std::array<stackshot::TraceRing, stackshot::max_cpus> traces_{};
    std::array<std::uint64_t, stackshot::max_cpus> counters_{};
    std::atomic<std::size_t> missed_signals_{0};
    std::atomic<stackshot::CpuMask> overdue_{0};
    std::atomic<std::size_t> waiting_auxiliaries_{0};
};

/// Proof of being stopped, for tests that call quiesced code directly.
class FakeQuiesced final : public stackshot::Quiesced {
  public:
    explicit FakeQuiesced(stackshot::CpuIndex cpu) : Quiesced(cpu) {}
};
