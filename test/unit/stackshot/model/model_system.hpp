#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "stackshot/attempt.hpp"
#include "test/unit/stackshot/fake_system.hpp"
#include "test/unit/stackshot/model/scheduler.hpp"

namespace model {

/// What was seen of one collection.
struct Outcome {
    std::string failure{};  ///< what is wrong with the collector; empty: nothing
    bool panicked = false;
    kcdata::kern_return error = kcdata::KERN_SUCCESS;
    /// The finished buffer without what depends on the collection; empty after an error.
    std::vector<std::byte> bytes{};
    std::vector<std::uint64_t> worked{};  ///< by CPU, in virtual time
    std::uint64_t makespan = 0;           ///< until the barrier has ended, in virtual time
};

/// Virtual time that reading the system takes.
struct Costs {
    std::uint64_t next_task = 0, task_thread_count = 0, skipped_thread = 0;
    std::uint64_t task = 0, thread = 0;
    /// Percent that an E core takes.
    std::uint64_t slowness_of_e = 100;
};

/// The fake system under a scheduler: its CPUs are the scheduler's, and it watches what the
/// collector does with them.
class ModelSystem final : public FakeSystem {
  public:
    using FakeSystem::FakeSystem;

    /// Takes one capture. The scheduler has as many CPUs as the system.
    Outcome collect(Scheduler& scheduler, const stackshot::Request& request,
                    const stackshot::Estimate& estimate, std::size_t size);

    Costs costs{};
    /// The capture may fail for want of memory.
    bool memory_may_end = false;
    /// The n-th look at a thread finds this error, for each pair.
    std::vector<std::pair<std::uint64_t, kcdata::kern_return>> thread_errors{};

    std::uint64_t absolute_time() const override;
    void wait_for_event() override;
    void signal_event() override;
    /// No part of the schedules: the ring outlives them, and has a model test of its own.
    void trace(stackshot::TraceEvent, std::uint64_t, const char*, std::uint32_t) override {}
    [[noreturn]] void spin_for_panic(stackshot::Quiesced&) override;
    [[noreturn]] void workers_overdue(stackshot::Quiesced&, stackshot::CpuMask cpus) override;
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

  private:
    struct Run;

    void work(std::uint64_t cost);
    void run_initiator(Run& run, const stackshot::Request& request,
                       const stackshot::Estimate& estimate, std::size_t size);
    void run_auxiliary(Run& run, unsigned cpu);
    void panic(Run& run, unsigned cpu);

    Run* run_ = nullptr;
};

}  // namespace model
