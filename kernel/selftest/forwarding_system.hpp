#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/stackshot_system.hpp"
#include "stackshot/system.hpp"

namespace kernel::selftest {

/// The kernel as it is, for systems that differ from it in some functions.
class ForwardingSystem : public stackshot::System {
  public:
    const stackshot::SystemFacts& facts() const override { return real_.facts(); }
    std::size_t task_count() override { return real_.task_count(); }
    std::size_t thread_count() override { return real_.thread_count(); }
    std::span<std::byte> allocate(std::size_t size) override { return real_.allocate(size); }
    void free(std::span<std::byte> memory) override { real_.free(memory); }
    kcdata::kern_return prepare_scratch() override { return real_.prepare_scratch(); }
    void release_scratch() override { real_.release_scratch(); }
    void lock() override { real_.lock(); }
    bool try_lock() override { return real_.try_lock(); }
    void unlock() override { real_.unlock(); }
    stackshot::TrapOutcome trap(stackshot::TrapBody& body) override { return real_.trap(body); }
    std::uint64_t absolute_time() const override { return real_.absolute_time(); }
    std::uint64_t microseconds_since_epoch() const override {
        return real_.microseconds_since_epoch();
    }
    std::uint32_t cluster_of(CpuIndex cpu) const override { return real_.cluster_of(cpu); }
    void wait_for_event() override { real_.wait_for_event(); }
    void signal_event() override { real_.signal_event(); }
    void trace(stackshot::TraceEvent event, std::uint64_t word, const char* file,
               std::uint32_t line) override {
        real_.trace(event, word, file, line);
    }
    stackshot::CpuCounters counters(stackshot::Quiesced& quiesced) override {
        return real_.counters(quiesced);
    }
    kcdata::Result<stackshot::TaskRef> next_task(stackshot::Quiesced& quiesced,
                                                 stackshot::TaskRef previous) override {
        return real_.next_task(quiesced, previous);
    }
    kcdata::Result<stackshot::ThreadRef> skip_threads(stackshot::Quiesced& quiesced,
                                                      stackshot::TaskRef task,
                                                      stackshot::ThreadRef previous,
                                                      std::size_t count) override {
        return real_.skip_threads(quiesced, task, previous, count);
    }
    kcdata::Result<std::size_t> task_thread_count(stackshot::Quiesced& quiesced,
                                                  stackshot::TaskRef task) override {
        return real_.task_thread_count(quiesced, task);
    }
    kcdata::kern_return task_facts(stackshot::Quiesced& quiesced, stackshot::TaskRef task,
                                   stackshot::TaskFacts& facts) override {
        return real_.task_facts(quiesced, task, facts);
    }
    kcdata::kern_return thread_facts(stackshot::Quiesced& quiesced, stackshot::ThreadRef thread,
                                     stackshot::ThreadFacts& facts) override {
        return real_.thread_facts(quiesced, thread, facts);
    }
    bool wait_facts(stackshot::Quiesced& quiesced, stackshot::ThreadRef thread,
                    const stackshot::BlockedThread& blocked, stackshot::WaitFacts& facts) override {
        return real_.wait_facts(quiesced, thread, blocked, facts);
    }
    void port_label_facts(stackshot::Quiesced& quiesced, stackshot::PortLabelRef label,
                          stackshot::PortLabelFacts& facts) override {
        real_.port_label_facts(quiesced, label, facts);
    }
    bool dispatch_queue_facts(stackshot::Quiesced& quiesced, stackshot::DispatchQueueRef queue,
                              stackshot::DispatchQueueFacts& facts) override {
        return real_.dispatch_queue_facts(quiesced, queue, facts);
    }
    bool io_statistics(stackshot::Quiesced& quiesced, stackshot::IoStatisticsRef statistics,
                       kcdata::io_stats_snapshot& snapshot) override {
        return real_.io_statistics(quiesced, statistics, snapshot);
    }
    kcdata::Result<stackshot::ThreadGroupRef> next_thread_group(
        stackshot::Quiesced& quiesced, stackshot::ThreadGroupRef previous,
        stackshot::ThreadGroupFacts& facts) override {
        return real_.next_thread_group(quiesced, previous, facts);
    }
    kcdata::Result<stackshot::CoalitionRef> next_coalition(
        stackshot::Quiesced& quiesced, stackshot::CoalitionRef previous,
        stackshot::CoalitionFacts& facts) override {
        return real_.next_coalition(quiesced, previous, facts);
    }
    std::size_t donating_pids(stackshot::Quiesced& quiesced, stackshot::TaskRef task,
                              std::span<std::int32_t> pids) override {
        return real_.donating_pids(quiesced, task, pids);
    }
    std::uint32_t stack_high_water(stackshot::Quiesced& quiesced,
                                   const stackshot::StackFacts& stack) override {
        return real_.stack_high_water(quiesced, stack);
    }
    stackshot::MemoryFacts memory_facts(stackshot::Quiesced& quiesced) override {
        return real_.memory_facts(quiesced);
    }
    CpuMask absent_cpus(stackshot::Quiesced& quiesced) override {
        return real_.absent_cpus(quiesced);
    }
    [[noreturn]] void workers_overdue(stackshot::Quiesced& quiesced, CpuMask cpus) override {
        real_.workers_overdue(quiesced, cpus);
        __builtin_unreachable();
    }
    [[noreturn]] void spin_for_panic(stackshot::Quiesced& quiesced) override {
        real_.spin_for_panic(quiesced);
        __builtin_unreachable();
    }
    bool read_words(stackshot::Quiesced& quiesced, std::uint64_t address,
                    std::span<std::uint64_t> words) override {
        return real_.read_words(quiesced, address, words);
    }
    stackshot::Followed follow_frame_records(stackshot::Quiesced& quiesced,
                                             stackshot::FrameChain& chain,
                                             std::span<std::uint64_t> return_addresses) override {
        return real_.follow_frame_records(quiesced, chain, return_addresses);
    }
    bool interrupted_registers(stackshot::Quiesced& quiesced, std::uint64_t return_address,
                               std::uint64_t frame_pointer,
                               stackshot::Registers& registers) override {
        return real_.interrupted_registers(quiesced, return_address, frame_pointer, registers);
    }
    std::span<const std::byte> unwind_tables(std::uint64_t& address) const override {
        return real_.unwind_tables(address);
    }

  protected:
    ~ForwardingSystem() = default;
    stackshot::System& real() { return real_; }

  private:
    stackshot::System& real_ = stackshot_system();
};

}  // namespace kernel::selftest
