#include "stackshot/stackshot.hpp"

#include <algorithm>
#include <cstring>

#include "stackshot/assembly.hpp"
#include "stackshot/attempt.hpp"
#include "stackshot/estimate.hpp"

namespace stackshot {

using namespace kcdata;

namespace {

/// Leaves a finished capture's buffer nothing but the pages it fills: what lies behind it there,
/// such as the room for stack walks, is zeroed, and whole pages behind it are freed.
void trim(System& system, Stackshot& capture) {
    const std::size_t page = std::max<std::size_t>(system.facts().page_size, 1);
    const std::size_t kept =
        std::min((capture.size + page - 1) / page * page, capture.buffer.size());
    std::memset(capture.buffer.data() + capture.size, 0, kept - capture.size);
    if (kept < capture.buffer.size())
        system.free(capture.buffer.subspan(kept));
    capture.buffer = capture.buffer.first(kept);
}

/// Runs the trap of one attempt, and counts it.
TrapOutcome run_trap(System& system, Collection& collection, SubsystemStatistics* totals) {
    SubsystemStatistics unwanted;
    SubsystemStatistics& counted = totals != nullptr ? *totals : unwanted;
    Collection* const one = &collection;
    CaptureTrap body(std::span(&one, 1));
    counted.last_end = 0;
    counted.last_start = system.absolute_time();
    const TrapOutcome outcome = system.trap(body);
    counted.last_end = system.absolute_time();
    ++counted.count;
    counted.duration += counted.last_end - counted.last_start;
    if (outcome.absent != 0)
        system.trace(TraceEvent::absent, outcome.absent);
    if (outcome.interrupts_off > system.facts().tunables.interrupts_off_limit) {
        ++counted.overdue;
        system.trace(TraceEvent::interrupts_overdue, outcome.interrupts_off);
    } else {
        system.trace(TraceEvent::resumed, outcome.interrupts_off);
    }
    return outcome;
}

/// One attempt with a buffer of `size` bytes.
Result<Stackshot> attempt_stackshot(System& system, const Request& request,
                                    const Estimate& estimate, std::size_t size,
                                    std::uint64_t prepare_begin, Statistics& statistics,
                                    SubsystemStatistics* totals) {
    AssemblyFacts facts;
    facts.tries = statistics.tries;
    facts.prior_duration = statistics.prior_time;
    statistics.buffer_size = size;

    system.trace(TraceEvent::attempt, size);
    Attempt attempt(system);
    if (const kern_return error =
            attempt.prepare(request, estimate, size, select_mode(system.facts(), request));
        error != KERN_SUCCESS)
        return traced(system, error);
    const Collection& collection = attempt.collection();
    facts.outer_begin = system.absolute_time();
    statistics.prepare_time = facts.outer_begin - prepare_begin;

    const TrapOutcome outcome = run_trap(system, attempt.collection(), totals);
    const std::uint64_t assemble_begin = system.absolute_time();
    statistics.trap_time = assemble_begin - facts.outer_begin;
    statistics.interrupts_off = outcome.interrupts_off;
    statistics.workers = collection.workers();
    statistics.absent = collection.absent();

    auto assembled = attempt.assemble(facts);
    statistics.peak_memory = std::max(statistics.peak_memory, attempt.peak_memory());
    if (!assembled.ok())
        return traced(system, assembled.error());
    system.trace(TraceEvent::assembled, assembled->size);
    const Counts counts = collection.counts();
    statistics.tasks = counts.tasks;
    statistics.threads = counts.threads;
    statistics.frames = counts.frames;
    Stackshot capture{assembled->buffer, assembled->size};
    trim(system, capture);
    statistics.assemble_time = system.absolute_time() - assemble_begin;
    capture.statistics = statistics;
    return capture;
}

/// XNU's rule for counters that the CPUs do not have: not asked for.
Request without_missing_counters(const System& system, Request request) {
    if (!system.facts().counts_cycles)
        request.flags &= ~STACKSHOT_INSTRS_CYCLES;
    return request;
}

Estimate estimate_now(System& system, const Request& request) {
    return estimate_stackshot(system.facts(), system.task_count(), system.thread_count(), request);
}

}  // namespace

Result<Stackshot> take_stackshot(System& system, const Request& wanted,
                                 SubsystemStatistics* totals) {
    const Request request = without_missing_counters(system, wanted);
    Statistics statistics;
    const std::size_t largest = max_tracebuf_size(system.facts());
    std::size_t size = 0;
    for (;;) {
        ++statistics.tries;
        const std::uint64_t prepare_begin = system.absolute_time();
        const Estimate estimate = estimate_now(system, request);
        if (statistics.tries == 1) {
            statistics.estimated_size = estimate.size;
            size = std::min(estimate.size, largest);
        }
        auto capture =
            attempt_stackshot(system, request, estimate, size, prepare_begin, statistics, totals);
        if (capture.ok() || capture.error() != KERN_INSUFFICIENT_BUFFER_SIZE)
            return capture;
        if (size >= largest)
            return KERN_RESOURCE_SHORTAGE;
        statistics.prior_time += statistics.trap_time;
        size = size > largest / 2 ? largest : size * 2;
    }
}

Result<Stackshot> try_stackshot(System& system, const Request& wanted, std::size_t size,
                                SubsystemStatistics* totals) {
    const Request request = without_missing_counters(system, wanted);
    Statistics statistics;
    statistics.tries = 1;
    const std::uint64_t prepare_begin = system.absolute_time();
    const Estimate estimate = estimate_now(system, request);
    statistics.estimated_size = estimate.size;
    return attempt_stackshot(system, request, estimate,
                             std::min(size, max_tracebuf_size(system.facts())), prepare_begin,
                             statistics, totals);
}

}  // namespace stackshot
