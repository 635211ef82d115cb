#include "stackshot/stackshot.hpp"

#include <algorithm>

#include "stackshot/assembly.hpp"
#include "stackshot/attempt.hpp"
#include "stackshot/estimate.hpp"

namespace stackshot {

using namespace kcdata;

namespace {

/// Holds the lock that serializes ordinary captures.
class SubsystemLock {
  public:
    SubsystemLock(System& system, bool wait) : system_(system) {
        if (wait)
            system_.lock();
        held_ = wait || system_.try_lock();
    }
    ~SubsystemLock() {
        if (held_)
            system_.unlock();
    }
    SubsystemLock(const SubsystemLock&) = delete;
    SubsystemLock& operator=(const SubsystemLock&) = delete;

    bool held() const { return held_; }

  private:
    System& system_;
    bool held_ = false;
};

/// One attempt with a buffer of `size` bytes.
Result<AssembledBuffer> attempt_stackshot(System& system, const Request& request,
                                          const Estimate& estimate, std::size_t size,
                                          std::uint64_t prepare_begin, Statistics& statistics) {
    AssemblyFacts facts;
    facts.tries = statistics.tries;
    facts.prior_duration = statistics.prior_time;

    Attempt attempt(system);
    if (const kern_return error =
            attempt.prepare(request, estimate, size, select_mode(system.facts(), request));
        error != KERN_SUCCESS)
        return error;
    Collection* collection = &attempt.collection();
    facts.outer_begin = system.absolute_time();
    statistics.prepare_time = facts.outer_begin - prepare_begin;

    CaptureTrap body(std::span<Collection* const>(&collection, 1));
    const TrapOutcome outcome = system.trap(body);
    const std::uint64_t assemble_begin = system.absolute_time();
    statistics.trap_time = assemble_begin - facts.outer_begin;
    statistics.interrupts_off = outcome.interrupts_off;
    statistics.workers = collection->workers();
    statistics.absent = collection->absent();

    auto assembled = attempt.assemble(facts);
    const Counts counts = collection->counts();
    statistics.tasks = counts.tasks;
    statistics.threads = counts.threads;
    statistics.frames = counts.frames;
    statistics.assemble_time = system.absolute_time() - assemble_begin;
    return assembled;
}

}  // namespace

Result<Stackshot> take_stackshot(System& system, const Request& request) {
    const SubsystemLock lock(system, !request.has(STACKSHOT_TRYLOCK));
    if (!lock.held())
        return KERN_LOCK_OWNED;

    Stackshot result;
    Statistics& statistics = result.statistics;
    const std::size_t largest = max_tracebuf_size(system.facts());
    std::size_t size = 0;
    for (;;) {
        ++statistics.tries;
        const std::uint64_t prepare_begin = system.absolute_time();
        const Estimate estimate =
            estimate_stackshot(system.facts(), system.task_count(), system.thread_count(), request);
        if (statistics.tries == 1) {
            statistics.estimated_size = estimate.size;
            size = std::min(estimate.size, largest);
        }
        statistics.buffer_size = size;
        const auto assembled =
            attempt_stackshot(system, request, estimate, size, prepare_begin, statistics);
        if (assembled.ok()) {
            result.buffer = assembled.value().buffer;
            result.size = assembled.value().size;
            return result;
        }
        if (assembled.error() != KERN_INSUFFICIENT_BUFFER_SIZE)
            return assembled.error();
        if (size >= largest)
            return KERN_RESOURCE_SHORTAGE;
        statistics.prior_time += statistics.trap_time;
        size = size > largest / 2 ? largest : size * 2;
    }
}

}  // namespace stackshot
