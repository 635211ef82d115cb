#include "test/unit/stackshot/model/model_system.hpp"

#include "stackshot/atomic.hpp"
#include "test/unit/stackshot/comparison.hpp"

namespace model {

using namespace kcdata;
using namespace stackshot;

namespace {

/// Leaves a CPU where it is to stay for good.
struct Stays {};

/// It is a data race if those who made them are not known to have done so.
void look_at_records(Collection& collection) {
    for (const WorkItem& item : collection.items())
        (void)static_cast<Chunk*>(item.records);
}

}  // namespace

/// A run's CPUs and how they meet. The stop itself is taken for right; it orders as
/// kernel/quiesce.hpp does.
struct ModelSystem::Run {
    explicit Run(ModelSystem& system, Scheduler& chosen) : attempt(system), scheduler(chosen) {}

    stackshot::Attempt attempt;
    Scheduler& scheduler;
    /// Whether there is a body for a panic to end.
    Atomic<bool> body{false};
    Atomic<bool> requested{false};
    Atomic<std::uint64_t> acknowledged{0};
    Atomic<bool> released{false};
    Atomic<std::uint64_t> resumed{0};
    /// A CPU panics: the first one goes on.
    Atomic<bool> panic{false};
    /// It has gone on: everybody else has to stay where it is.
    Atomic<bool> stopped{false};
    Outcome outcome{};
    // Seen by the scheduler's eye; ordered by nothing.
    bool list_ended = false;
    bool error_injected = false;
    bool initiator_done = false;
    int panic_cpu = -1;  ///< the one that goes on
    std::uint64_t looks_at_threads = 0;
};

Outcome ModelSystem::collect(Scheduler& scheduler, const Request& request, const Estimate& estimate,
                             std::size_t size) {
    Run run(*this, scheduler);
    run_ = &run;
    run.outcome.worked.resize(constant.cpu_count);
    std::string failure = scheduler.run([&](unsigned cpu) {
        bool panics = false;
        try {
            if (cpu == 0)
                run_initiator(run, request, estimate, size);
            else
                run_auxiliary(run, cpu);
        } catch (const PanicHere&) {
            panics = true;
        } catch (const Stays&) {
        }
        // Not in the handler: other CPUs go on meanwhile, on the same host thread.
        try {
            if (panics)
                panic(run, cpu);
        } catch (const Stays&) {
        }
    });
    run_ = nullptr;
    run.outcome.failure = failure;
    return std::move(run.outcome);
}

/// What Quiesce::stop_for_panic() does on a CPU that panics, wherever it was.
void ModelSystem::panic(Run& run, unsigned cpu) {
    const bool first = !run.panic.exchange(true, std::memory_order_seq_cst);
    const bool active = run.body.load(std::memory_order_seq_cst);
    if (active)
        run.attempt.collection().panic(cpu);
    if (!first)
        return;
    while (active && run.attempt.collection().working() != 0)
        run.scheduler.wait();
    run.panic_cpu = static_cast<int>(cpu);
    run.outcome.panicked = true;
    // Who has left the collection has done what it did there.
    if (active && !run.initiator_done)
        look_at_records(run.attempt.collection());
    run.stopped.store(true, std::memory_order_release);
    run.scheduler.signal();
}

void ModelSystem::run_initiator(Run& run, const Request& request, const Estimate& estimate,
                                std::size_t size) {
    Scheduler& scheduler = run.scheduler;
    const auto stay_if_stopped = [&] {
        if (run.stopped.load(std::memory_order_acquire))
            throw Stays{};
    };
    if (run.attempt.prepare(request, estimate, size, select_mode(constant, request)) !=
        KERN_SUCCESS)
        scheduler.fail("no memory for the attempt");
    Collection& collection = run.attempt.collection();

    const auto stay_if_panicking = [&] {
        if (run.panic.load(std::memory_order_seq_cst))
            throw Stays{};
    };
    run.body.store(true, std::memory_order_seq_cst);
    stay_if_panicking();
    run.requested.store(true, std::memory_order_release);
    scheduler.signal();
    collection.cpu_preflight(0);
    const std::uint64_t others = (std::uint64_t{1} << constant.cpu_count) - 2;
    while (run.acknowledged.load(std::memory_order_acquire) != others) {
        stay_if_stopped();
        scheduler.wait();
    }
    FakeQuiesced quiesced(0);
    collection.initiator(quiesced);
    run.initiator_done = true;
    run.outcome.makespan = scheduler.time(0);
    // The barrier alone has to order this.
    look_at_records(collection);

    run.released.store(true, std::memory_order_release);
    scheduler.signal();
    while (run.resumed.load(std::memory_order_acquire) != others) {
        stay_if_stopped();
        scheduler.wait();
    }
    run.body.store(false, std::memory_order_seq_cst);
    stay_if_panicking();
    for (unsigned cpu = 0; cpu < constant.cpu_count; ++cpu)
        run.outcome.worked[cpu] = scheduler.worked(cpu);
    auto assembled = run.attempt.assemble({});
    run.outcome.error = assembled.error();
    if (!assembled.ok())
        return;
    run.outcome.bytes = comparable(assembled->buffer.first(assembled->size));
    free(assembled->buffer);
}

void ModelSystem::run_auxiliary(Run& run, unsigned cpu) {
    Scheduler& scheduler = run.scheduler;
    const auto wait_for = [&](const Atomic<bool>& flag) {
        while (!flag.load(std::memory_order_acquire)) {
            if (run.stopped.load(std::memory_order_acquire))
                throw Stays{};
            scheduler.wait();
        }
    };
    const std::uint64_t bit = std::uint64_t{1} << cpu;
    wait_for(run.requested);
    Collection& collection = run.attempt.collection();
    collection.cpu_preflight(cpu);
    run.acknowledged.fetch_or(bit, std::memory_order_release);
    scheduler.signal();
    FakeQuiesced quiesced(cpu);
    collection.auxiliary(quiesced);
    if (!run.list_ended && !run.error_injected && !memory_may_end)
        scheduler.fail("a CPU left before all tasks were found");
    wait_for(run.released);
    run.resumed.fetch_or(bit, std::memory_order_release);
    scheduler.signal();
}

void ModelSystem::work(std::uint64_t cost) {
    if (run_ == nullptr)
        return;
    Scheduler& scheduler = run_->scheduler;
    const unsigned cpu = scheduler.self();
    const bool slow = constant.cluster_types[cluster_of(cpu)] == ClusterType::E;
    scheduler.spend(slow ? cost * costs.slowness_of_e / 100 : cost);
    scheduler.yield();
    if (run_->panic_cpu >= 0)
        scheduler.fail("a CPU records while a panic goes on");
    if (run_->initiator_done)
        scheduler.fail("a CPU records behind the barrier");
}

std::uint64_t ModelSystem::absolute_time() const {
    return run_ != nullptr && !run_->scheduler.order_is_random()
               ? run_->scheduler.time(run_->scheduler.self())
               : FakeSystem::absolute_time();
}

void ModelSystem::wait_for_event() {
    run_->scheduler.wait();
}

void ModelSystem::signal_event() {
    if (run_ != nullptr)
        run_->scheduler.signal();
}

void ModelSystem::spin_for_panic(Quiesced&) {
    throw Stays{};
}

void ModelSystem::workers_overdue(Quiesced&, CpuMask) {
    run_->scheduler.fail("CPUs are given up");
}

Result<TaskRef> ModelSystem::next_task(Quiesced& quiesced, TaskRef previous) {
    work(costs.next_task);
    auto next = FakeSystem::next_task(quiesced, previous);
    if (run_ != nullptr && next.ok() && next.value() == TaskRef::none)
        run_->list_ended = true;
    return next;
}

Result<ThreadRef> ModelSystem::skip_threads(Quiesced& quiesced, TaskRef task, ThreadRef previous,
                                            std::size_t count) {
    work(costs.skipped_thread * count);
    return FakeSystem::skip_threads(quiesced, task, previous, count);
}

Result<std::size_t> ModelSystem::task_thread_count(Quiesced& quiesced, TaskRef task) {
    work(costs.task_thread_count);
    return FakeSystem::task_thread_count(quiesced, task);
}

kern_return ModelSystem::task_facts(Quiesced& quiesced, TaskRef task, TaskFacts& facts) {
    work(costs.task);
    return FakeSystem::task_facts(quiesced, task, facts);
}

kern_return ModelSystem::thread_facts(Quiesced& quiesced, ThreadRef thread, ThreadFacts& facts) {
    work(costs.thread);
    if (run_ != nullptr) {
        ++run_->looks_at_threads;
        for (const auto& [look, error] : thread_errors) {
            if (look == run_->looks_at_threads) {
                run_->error_injected = true;
                return error;
            }
        }
    }
    return FakeSystem::thread_facts(quiesced, thread, facts);
}

}  // namespace model
