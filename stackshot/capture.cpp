#include "stackshot/capture.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace stackshot {

using namespace kcdata;

namespace {

constexpr std::size_t frames_size = Unwinder::max_frames * sizeof(std::uint64_t);

template <typename Function>
void for_each_cpu(CpuMask cpus, Function function) {
    for (; cpus != 0; cpus &= cpus - 1)
        function(static_cast<CpuIndex>(std::countr_zero(cpus)));
}

/// XNU's rule for errors inside a capture: a shortage there means that the attempt's buffer was too
/// small, and a larger one may do.
kern_return capture_error(kern_return error) {
    return error == KERN_RESOURCE_SHORTAGE ? KERN_INSUFFICIENT_BUFFER_SIZE : error;
}

/// As many objects as `room` has space for, made there.
template <typename T>
std::span<T> place(std::span<std::byte> room) {
    if (room.empty())
        return {};
    const std::size_t count = room.size() / sizeof(T);
    return {new (room.data()) T[count], count};
}

}  // namespace

Mode select_mode(const SystemFacts& facts, const Request& request) {
    return facts.tunables.single_threaded || request.process_scoped() ? Mode::single_threaded
                                                                      : Mode::parallel;
}

Collection::Collection(System& system, const Request& request, const Estimate& estimate, Mode mode,
                       std::span<std::byte> memory)
    : system_(system),
      request_(request),
      estimate_(estimate),
      mode_(mode),
      memory_(memory),
      unwinder_(system),
      usecs_since_epoch_(system.microseconds_since_epoch()) {
    (void)state_.set_up();
}

void Collection::cpu_preflight(CpuIndex cpu) {
    PerCpu& own = cpus_[cpu];
    own.preflight_time = system_.absolute_time();
    // Release: the initiator, which may see it without seeing the acknowledgement, sees the time.
    own.preflighted.store(true, std::memory_order_release);
}

void Collection::initiator(Quiesced& quiesced) {
    begin_time_ = system_.absolute_time();
    const kern_return error = set_up(quiesced);
    if (error == KERN_SUCCESS)
        (void)state_.run();
    else
        (void)state_.fail(capture_error(error));
    system_.signal_event();

    collect(quiesced, true);
    wait_for_workers(quiesced);
    end_time_ = system_.absolute_time();
}

void Collection::wait_for_workers(Quiesced& quiesced) {
    const std::uint64_t begin = system_.absolute_time();
    for (;;) {
        // Acquire: what the other CPUs recorded is seen from here on.
        const CpuMask working = working_.load(std::memory_order_acquire);
        if (working == 0)
            return;
        // Nothing can be given up: a worker writes into memory that is freed after the trap.
        if (system_.absolute_time() - begin >= system_.facts().tunables.worker_timeout)
            system_.workers_overdue(quiesced, working);
        system_.wait_for_event();
    }
}

void Collection::auxiliary(Quiesced& quiesced) {
    if (mode_ == Mode::single_threaded)
        return;
    while (state_.state() == CaptureState::SETUP)
        system_.wait_for_event();
    collect(quiesced, false);
}

void Collection::collect(Quiesced& quiesced, bool main) {
    PerCpu& own = cpus_[quiesced.cpu()];
    own.latency.init = system_.absolute_time() - own.preflight_time;
    if (state_.state() == CaptureState::RUNNING) {
        const kern_return error = mode_ == Mode::single_threaded
                                      ? collect_single_threaded(quiesced, own)
                                      : collect_in_parallel(quiesced, own, main);
        // Another CPU's error came first where this one was only aborted.
        if (error != KERN_SUCCESS)
            (void)state_.fail(capture_error(error));
    }
    own.latency.total = system_.absolute_time() - own.preflight_time;
    // Release: whoever sees this CPU gone sees what it recorded.
    working_.fetch_and(~(CpuMask{1} << quiesced.cpu()), std::memory_order_release);
    system_.signal_event();
}

kern_return Collection::set_up(Quiesced& quiesced) {
    absent_ = system_.absent_cpus(quiesced);
    participants_ = CpuMask{1} << quiesced.cpu();
    if (mode_ == Mode::parallel) {
        const CpuIndex count = std::min(system_.facts().cpu_count, max_cpus);
        for (CpuIndex cpu = 0; cpu < count; ++cpu) {
            // Those that did not stop may be preflighting right now: not counted, never waited for.
            if ((absent_ >> cpu & 1) == 0 && cpus_[cpu].preflighted.load(std::memory_order_acquire))
                participants_ |= CpuMask{1} << cpu;
        }
    }
    working_.store(participants_, std::memory_order_relaxed);
    for_each_cpu(participants_, [this](CpuIndex cpu) {
        CpuLatency& latency = cpus_[cpu].latency;
        latency.cpu = cpu;
        latency.cluster = system_.cluster_of(cpu);
        latency.cluster_type = system_.facts().cluster_types[latency.cluster];
    });
    return mode_ == Mode::parallel ? set_up_parallel() : set_up_single_threaded(quiesced);
}

kern_return Collection::set_up_single_threaded(Quiesced& quiesced) {
    // The room for return addresses is cut from the end of the one buffer.
    if (memory_.size() < frames_size)
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    const std::size_t records_size = (memory_.size() - frames_size) / alignment * alignment;
    cpus_[quiesced.cpu()].frames = place<std::uint64_t>(memory_.subspan(records_size));
    single_writer_ = Writer(memory_.first(records_size));
    return single_writer_.begin(request_.begin_magic());
}

kern_return Collection::set_up_parallel() {
    std::array<std::uint32_t, max_clusters> cpus{};
    for_each_cpu(participants_,
                 [&](CpuIndex cpu) { ++cpus[cpus_[cpu].latency.cluster % max_clusters]; });
    const std::uint32_t clusters = std::min(system_.facts().cluster_count, max_clusters);
    arena_.reset(system_, memory_, std::span(cpus).first(clusters));

    bool enough = true;
    for_each_cpu(participants_, [&](CpuIndex cpu) {
        const auto room = arena_.allocate(cpus_[cpu].latency.cluster, frames_size);
        cpus_[cpu].frames = place<std::uint64_t>(room);
        enough = enough && !room.empty();
    });
    const auto room =
        arena_.allocate(cpus_[0].latency.cluster, estimate_.queue_capacity * sizeof(WorkItem));
    queue_.reset(place<WorkItem>(room));
    return enough && !room.empty() ? KERN_SUCCESS : KERN_RESOURCE_SHORTAGE;
}

kern_return Collection::record_system(Writer& writer, Quiesced& quiesced) {
    PreTaskFacts facts;
    facts.size_estimate =
        static_cast<std::uint32_t>(std::min<std::size_t>(estimate_.size, UINT32_MAX));
    facts.size_estimate_adj = estimate_.adj;
    facts.absolute_time = begin_time_;
    facts.usecs_since_epoch = usecs_since_epoch_;
    return record_pre_task(writer, system_, quiesced, request_, facts);
}

Result<TaskRef> Collection::next_task(Quiesced& quiesced, CycleDetector<TaskRef>& circle,
                                      TaskRef task) {
    auto next = system_.next_task(quiesced, task);
    if (next.ok() && next.value() != TaskRef::none && circle.step(next.value()))
        return KERN_FAILURE;
    return next;
}

kern_return Collection::collect_single_threaded(Quiesced& quiesced, PerCpu& own) {
    if (const kern_return error = record_system(single_writer_, quiesced); error != KERN_SUCCESS)
        return error;
    Recorder recorder(system_, quiesced, request_, unwinder_, own.frames);
    CycleDetector<TaskRef> circle;
    TaskRef task = TaskRef::none;
    for (bool done = false; !done;) {
        const auto next = next_task(quiesced, circle, task);
        if (!next.ok())
            return next.error();
        task = next.value();
        if (task == TaskRef::none)
            break;
        bool recorded = false;
        if (const kern_return error = recorder.record_task(single_writer_, task, recorded);
            error != KERN_SUCCESS)
            return error;
        done = recorded && request_.process_scoped();
    }
    own.latency.counts = recorder.counts();
    own.latency.buffer = single_writer_.used();
    return KERN_SUCCESS;
}

kern_return Collection::collect_in_parallel(Quiesced& quiesced, PerCpu& own, bool main) {
    Recorder recorder(system_, quiesced, request_, unwinder_, own.frames);
    ChunkChain chain(arena_, own.latency.cluster, estimate_.smallest_chunk);
    kern_return error = main ? fill_queue(quiesced, chain) : KERN_SUCCESS;
    if (error == KERN_SUCCESS)
        error = work_on_queue(recorder, chain, own);
    own.latency.counts = recorder.counts();
    own.latency.buffer = chain.bytes_taken();
    own.latency.borrowed = chain.bytes_borrowed();
    return error;
}

kern_return Collection::fill_queue(Quiesced& quiesced, ChunkChain& chain) {
    if (const kern_return error = record_system(chain.start(), quiesced); error != KERN_SUCCESS)
        return error;
    pre_task_ = chain.finish();

    CycleDetector<TaskRef> circle;
    TaskRef task = TaskRef::none;
    bool full = false;
    for (;;) {
        const auto next = next_task(quiesced, circle, task);
        if (!next.ok())
            return next.error();
        task = next.value();
        if (task == TaskRef::none)
            break;
        // A full queue ends the attempt, but a circle is another error than too many tasks.
        full = full || !queue_.push(task);
        if (!full)
            system_.signal_event();
    }
    if (full)
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    queue_.set_populated();
    system_.signal_event();
    return KERN_SUCCESS;
}

kern_return Collection::work_on_queue(Recorder& recorder, ChunkChain& chain, PerCpu& own) {
    for (;;) {
        if (state_.state() != CaptureState::RUNNING)
            return KERN_ABORTED;
        // Before the look at the queue: an item may come in between.
        const bool last_look = queue_.populated();
        WorkItem* item = queue_.claim();
        if (item == nullptr) {
            if (last_look)
                return KERN_SUCCESS;
            const std::uint64_t begin = system_.absolute_time();
            system_.wait_for_event();
            own.latency.work_queue += system_.absolute_time() - begin;
            continue;
        }
        bool recorded = false;
        if (const kern_return error = recorder.record_task(chain.start(), item->task, recorded);
            error != KERN_SUCCESS)
            return error;
        item->records = chain.finish();
    }
}

kern_return Collection::conclude() {
    // Not even SETUP left: the trap never ran it.
    const bool ran = state_.state() != CaptureState::SETUP;
    const kern_return error = ran ? state_.error() : KERN_FAILURE;
    state_.finish();
    for_each_cpu(participants_, [this](CpuIndex cpu) {
        latencies_[latency_count_++] = cpus_[cpu].latency;
        counts_ += cpus_[cpu].latency.counts;
    });
    return error;
}

void CaptureTrap::cpu_preflight(CpuIndex cpu) {
    for (Collection* collection : collections_)
        collection->cpu_preflight(cpu);
}

void CaptureTrap::initiator(Quiesced& quiesced) {
    for (Collection* collection : collections_)
        collection->initiator(quiesced);
}

void CaptureTrap::auxiliary(Quiesced& quiesced) {
    for (Collection* collection : collections_)
        collection->auxiliary(quiesced);
}

}  // namespace stackshot
