#include "stackshot/capture.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "stackshot/record_system.hpp"

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

/// Memory of a collection by one CPU.
class EndOfBuffer final : public CollectionMemory {
  public:
    explicit EndOfBuffer(Writer& writer) : writer_(writer) {}
    std::span<std::byte> allocate(std::size_t size) override {
        const auto room = writer_.allocate_end(size);
        return room.ok() ? room.value() : std::span<std::byte>{};
    }

  private:
    Writer& writer_;
};

/// Memory of a collection by many: it is read when all are done.
class PoolOfCluster final : public CollectionMemory {
  public:
    PoolOfCluster(Arena& arena, std::uint32_t cluster) : arena_(arena), cluster_(cluster) {}
    std::span<std::byte> allocate(std::size_t size) override {
        return arena_.allocate(cluster_, size);
    }

  private:
    Arena& arena_;
    std::uint32_t cluster_;
};

}  // namespace

Mode select_mode(const SystemFacts& facts, const Request& request) {
    const bool single = facts.tunables.single_threaded || request.process_scoped() ||
                        request.has(STACKSHOT_FROM_PANIC | STACKSHOT_PAGE_TABLES);
    return single ? Mode::single_threaded : Mode::parallel;
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
    system_.trace(TraceEvent::preflight, 0);
    PerCpu& own = cpus_[cpu];
    own.preflight_time = system_.absolute_time();
    // Release: the initiator, which may see it without seeing the acknowledgement, sees the time.
    own.preflighted.store(true, std::memory_order_release);
}

void Collection::initiator(Quiesced& quiesced) {
    const CpuMask self = CpuMask{1} << quiesced.cpu();
    // In one order with panic(): either that CPU waits for this one, or this one sees the panic.
    participants_.store(self, std::memory_order_seq_cst);
    begin_time_ = system_.absolute_time();
    if (!state_.panicked()) {
        const kern_return error = set_up(quiesced);
        if (error == KERN_SUCCESS)
            (void)state_.run();
        else
            (void)state_.fail(capture_error(traced(system_, error)));
        system_.signal_event();
        latency_.setup = system_.absolute_time() - begin_time_;
        system_.trace(TraceEvent::set_up, workers());
        collect(quiesced);
    } else {
        leave(quiesced.cpu());
    }
    const std::uint64_t wait_begin = system_.absolute_time();
    wait_for_workers(quiesced);
    end_time_ = system_.absolute_time();
    latency_.cpu_wait = end_time_ - wait_begin;
    latency_.calling_cpu = quiesced.cpu();
    system_.trace(TraceEvent::barrier, latency_.cpu_wait);
    if (state_.panicked())
        system_.spin_for_panic(quiesced);
}

CpuMask Collection::working() const {
    // Acquire: what the CPUs that have left recorded is seen from here on; and the initiator leaves
    // after it has named all participants.
    const CpuMask left = left_.load(std::memory_order_acquire);
    const CpuMask overdue = overdue_.load(std::memory_order_relaxed);
    return participants_.load(std::memory_order_seq_cst) & ~left & ~overdue;
}

void Collection::leave(CpuIndex cpu) {
    // Release: whoever sees this CPU gone sees what it recorded.
    left_.fetch_or(CpuMask{1} << cpu, std::memory_order_release);
    system_.signal_event();
}

void Collection::wait_for_workers(Quiesced& quiesced) {
    const std::uint64_t begin = system_.absolute_time();
    for (;;) {
        const CpuMask left_over = working();
        if (left_over == 0)
            return;
        if (system_.absolute_time() - begin >= system_.facts().tunables.worker_timeout) {
            if (state_.panicked())
                return;
            // Nothing can be given up: a worker writes into memory that is freed after the trap.
            overdue_.store(left_over, std::memory_order_relaxed);
            system_.workers_overdue(quiesced, left_over);
        }
        system_.wait_for_event();
    }
}

void Collection::auxiliary(Quiesced& quiesced) {
    if (mode_ == Mode::single_threaded)
        return;
    while (state_.state() == CaptureState::SETUP)
        system_.wait_for_event();
    collect(quiesced);
    if (state_.panicked())
        system_.spin_for_panic(quiesced);
}

void Collection::collect(Quiesced& quiesced) {
    PerCpu& own = cpus_[quiesced.cpu()];
    own.counters = system_.counters(quiesced);
    own.latency.init = system_.absolute_time() - own.preflight_time;
    if (state_.state() == CaptureState::RUNNING) {
        const kern_return error = mode_ == Mode::single_threaded
                                      ? collect_single_threaded(quiesced, own)
                                      : collect_in_parallel(quiesced, own);
        // Another CPU's error came first where this one was only aborted.
        if (error != KERN_SUCCESS)
            (void)state_.fail(capture_error(error));
    }
    const CpuCounters counters = system_.counters(quiesced);
    own.latency.counters = {counters.cycles - own.counters.cycles,
                            counters.instructions - own.counters.instructions};
    own.latency.total = system_.absolute_time() - own.preflight_time;
    system_.trace(TraceEvent::recorded, own.latency.counts.threads);
    leave(quiesced.cpu());
}

void Collection::panic(CpuIndex cpu) {
    if (state_.panic())
        leave(cpu);
}

kern_return Collection::set_up(Quiesced& quiesced) {
    absent_ = system_.absent_cpus(quiesced);
    CpuMask participants = CpuMask{1} << quiesced.cpu();
    if (mode_ == Mode::parallel) {
        const CpuIndex count = std::min(system_.facts().cpu_count, max_cpus);
        for (CpuIndex cpu = 0; cpu < count; ++cpu) {
            // Those that did not stop may be preflighting right now: not counted, never waited for.
            if ((absent_ >> cpu & 1) == 0 && cpus_[cpu].preflighted.load(std::memory_order_acquire))
                participants |= CpuMask{1} << cpu;
        }
    }
    for_each_cpu(participants, [this](CpuIndex cpu) {
        CpuLatency& latency = cpus_[cpu].latency;
        latency.cpu = cpu;
        latency.cluster = system_.cluster_of(cpu);
        latency.cluster_type = system_.facts().cluster_types[latency.cluster];
    });
    participants_.store(participants, std::memory_order_seq_cst);
    main_ = choose_main(quiesced.cpu());
    return mode_ == Mode::parallel ? set_up_parallel() : set_up_single_threaded(quiesced);
}

/// The initiator, unless it is an E core and a P core takes part: what only the main CPU can do,
/// the others wait for. XNU's P cores compete for it in their preflight; here a CPU that preflights
/// may yet be found absent.
CpuIndex Collection::choose_main(CpuIndex self) const {
    CpuIndex main = self;
    if (cpus_[self].latency.cluster_type == ClusterType::E) {
        for_each_cpu(workers(), [&](CpuIndex cpu) {
            if (main == self && cpus_[cpu].latency.cluster_type == ClusterType::P)
                main = cpu;
        });
    }
    return main;
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
    bool two_types = false;
    const ClusterType type = cpus_[main_].latency.cluster_type;
    for_each_cpu(workers(), [&](CpuIndex cpu) {
        ++cpus[cpus_[cpu].latency.cluster];
        two_types = two_types || cpus_[cpu].latency.cluster_type != type;
    });
    const std::uint32_t clusters = std::min(system_.facts().cluster_count, max_clusters);
    arena_.reset(system_, state_, memory_, std::span(cpus).first(clusters));

    bool enough = true;
    for_each_cpu(workers(), [&](CpuIndex cpu) {
        const auto room = arena_.allocate(cpus_[cpu].latency.cluster, frames_size);
        cpus_[cpu].frames = place<std::uint64_t>(room);
        enough = enough && !room.empty();
    });
    extra_parts_ = max_extra_parts(static_cast<CpuIndex>(std::popcount(workers())));
    const std::uint32_t queues = two_types ? 2 : 1;
    const auto room =
        arena_.allocate(cpus_[main_].latency.cluster,
                        WorkQueues::storage_size(estimate_.queue_capacity + extra_parts_, queues));
    queues_.reset(room, queues);
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
    if (!next.ok())
        return traced(system_, next.error());
    if (next.value() != TaskRef::none && circle.step(next.value()))
        return traced(system_, KERN_FAILURE);
    return next;
}

kern_return Collection::collect_single_threaded(Quiesced& quiesced, PerCpu& own) {
    if (const kern_return error = record_system(single_writer_, quiesced); error != KERN_SUCCESS)
        return traced(system_, error);
    const std::uint64_t begin = system_.absolute_time();
    EndOfBuffer memory(single_writer_);
    Recorder recorder(system_, quiesced, request_, unwinder_, own.frames, memory);
    CycleDetector<TaskRef> circle;
    TaskRef task = TaskRef::none;
    for (bool done = false; !done;) {
        const auto next = next_task(quiesced, circle, task);
        if (!next.ok())
            return next.error();
        task = next.value();
        if (task == TaskRef::none)
            break;
        if (const kern_return error = look_at_task(quiesced, task); error != KERN_SUCCESS)
            return traced(system_, error);
        RecordedTask recorded;
        if (const kern_return error = recorder.record_task(single_writer_, task, {}, recorded);
            error != KERN_SUCCESS)
            return error;
        if (!recorded.wanted)
            continue;
        if (const kern_return error = record_task_end(single_writer_, request_, port_labels_,
                                                      [&](auto visit) { visit(recorded); });
            error != KERN_SUCCESS)
            return traced(system_, error);
        recorder.rewind();
        done = request_.process_scoped();
    }
    if (const kern_return error = record_behind_tasks(single_writer_, quiesced);
        error != KERN_SUCCESS)
        return error;
    task_iteration_ = system_.absolute_time() - begin;
    own.latency.counts = recorder.counts();
    own.latency.buffer = single_writer_.used();
    return KERN_SUCCESS;
}

kern_return Collection::collect_in_parallel(Quiesced& quiesced, PerCpu& own) {
    PoolOfCluster memory(arena_, own.latency.cluster);
    Recorder recorder(system_, quiesced, request_, unwinder_, own.frames, memory);
    ChunkChain chain(arena_, own.latency.cluster, estimate_.smallest_chunk);
    const bool main = main_ == quiesced.cpu();
    const std::uint64_t begin = system_.absolute_time();
    kern_return error = main ? fill_queues(quiesced, chain) : kern_return{KERN_SUCCESS};
    if (error == KERN_SUCCESS)
        error = work_on_queues(recorder, chain, own);
    if (main)
        task_iteration_ = system_.absolute_time() - begin;
    own.latency.counts = recorder.counts();
    own.latency.buffer = chain.bytes_taken();
    own.latency.borrowed = chain.bytes_borrowed();
    return error;
}

kern_return Collection::fill_queues(Quiesced& quiesced, ChunkChain& chain) {
    if (const kern_return error = record_system(chain.start(), quiesced); error != KERN_SUCCESS)
        return traced(system_, error);
    pre_task_ = chain.finish();

    const std::uint64_t begin = system_.absolute_time();
    CycleDetector<TaskRef> circle;
    TaskRef task = TaskRef::none;
    kern_return pushed = KERN_SUCCESS;
    for (;;) {
        const auto next = next_task(quiesced, circle, task);
        if (!next.ok())
            return next.error();
        task = next.value();
        if (task == TaskRef::none)
            break;
        if (const kern_return error = look_at_task(quiesced, task); error != KERN_SUCCESS)
            return traced(system_, error);
        // Full queues end the attempt, but a circle is another error than too many tasks.
        if (pushed == KERN_SUCCESS)
            pushed = push_task(quiesced, task);
        if (pushed != KERN_SUCCESS && pushed != KERN_INSUFFICIENT_BUFFER_SIZE)
            return traced(system_, pushed);
    }
    if (pushed != KERN_SUCCESS)
        return traced(system_, pushed);
    queues_.set_populated();
    queue_building_ = system_.absolute_time() - begin;
    system_.trace(TraceEvent::populated, 0);
    system_.signal_event();
    const kern_return error = record_behind_tasks(chain.start(), quiesced);
    post_task_ = chain.finish();
    return error;
}

kern_return Collection::look_at_task(Quiesced& quiesced, TaskRef task) {
    if (!request_.is_delta() || !request_.has(STACKSHOT_SAVE_JETSAM_COALITIONS))
        return KERN_SUCCESS;
    TaskFacts facts;
    const kern_return error = system_.task_facts(quiesced, task, facts);
    newer_task_ = newer_task_ || facts.start_time > request_.delta_timestamp;
    return error;
}

kern_return Collection::record_behind_tasks(Writer& writer, Quiesced& quiesced) {
    const bool wanted =
        request_.has(STACKSHOT_SAVE_JETSAM_COALITIONS) && (!request_.is_delta() || newer_task_);
    const kern_return error =
        wanted ? record_coalitions(writer, system_, quiesced) : kern_return{KERN_SUCCESS};
    return error == KERN_SUCCESS ? error : traced(system_, error);
}

kern_return Collection::push_task(Quiesced& quiesced, TaskRef task) {
    const auto counted = system_.task_thread_count(quiesced, task);
    if (!counted.ok())
        return counted.error();
    // Not more than all tasks have together: a wrong count does not make this CPU run in circles.
    const std::size_t threads = std::min(counted.value(), estimate_.threads);
    const std::size_t length =
        threads_per_part(estimate_.threads, static_cast<CpuIndex>(std::popcount(workers())));
    std::size_t cuts = std::min(threads == 0 ? 0 : (threads - 1) / length, extra_parts_);
    const std::size_t even_length = (threads + cuts) / (cuts + 1);
    TaskPart part;
    for (; cuts > 0; --cuts) {
        const bool at_front = part.first == ThreadRef::none;
        const auto end =
            system_.skip_threads(quiesced, task, part.first, even_length + (at_front ? 1 : 0));
        if (!end.ok())
            return end.error();
        if (end.value() == ThreadRef::none)
            break;
        part.end = end.value();
        if (const kern_return error = push(task, part, even_length); error != KERN_SUCCESS)
            return error;
        --extra_parts_;
        part = {.first = part.end};
    }
    return push(task, part, part.first == ThreadRef::none ? counted.value() : even_length);
}

kern_return Collection::push(TaskRef task, const TaskPart& part, std::size_t threads) {
    if (!queues_.push(task, part, threads))
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    system_.signal_event();
    return KERN_SUCCESS;
}

kern_return Collection::work_on_queues(Recorder& recorder, ChunkChain& chain, PerCpu& own) {
    for (;;) {
        if (state_.state() != CaptureState::RUNNING)
            return traced(system_, KERN_ABORTED);
        // Before the look at the queues: an item may come in between.
        const bool last_look = queues_.populated();
        WorkItem* item = queues_.claim(own.latency.cluster_type);
        if (item == nullptr) {
            if (last_look)
                return KERN_SUCCESS;
            const std::uint64_t begin = system_.absolute_time();
            system_.wait_for_event();
            own.latency.work_queue += system_.absolute_time() - begin;
            continue;
        }
        RecordedTask recorded;
        if (const kern_return error =
                recorder.record_task(chain.start(), item->task, item->part, recorded);
            error != KERN_SUCCESS)
            return error;
        item->records = chain.finish();
        item->recorded = recorded;
    }
}

kern_return Collection::conclude() {
    // Not even SETUP left: the trap never ran it.
    const bool ran = state_.state() != CaptureState::SETUP;
    const kern_return error = ran ? state_.error() : KERN_FAILURE;
    (void)state_.finish();
    for_each_cpu(workers(), [this](CpuIndex cpu) {
        latencies_[latency_count_++] = cpus_[cpu].latency;
        counts_ += cpus_[cpu].latency.counts;
    });
    latency_.main_cpu = main_;
    latency_.task_iteration = task_iteration_;
    latency_.queue_building = queue_building_;
    latency_.buffer_size = memory_.size();
    if (mode_ == Mode::parallel) {
        const Arena::Usage usage = arena_.usage();
        latency_.buffer_used = usage.used;
        latency_.buffer_overhead = usage.freed;
        latency_.buffer_count = usage.pools;
    } else {
        latency_.buffer_used = single_writer_.used() + frames_size;
        latency_.buffer_count = 1;
    }
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

void CaptureTrap::panic(CpuIndex cpu) {
    for (Collection* collection : collections_)
        collection->panic(cpu);
}

CpuMask CaptureTrap::working() const {
    CpuMask working = 0;
    for (const Collection* collection : collections_)
        working |= collection->working();
    return working;
}

void CaptureTrap::auxiliary(Quiesced& quiesced) {
    for (Collection* collection : collections_)
        collection->auxiliary(quiesced);
}

}  // namespace stackshot
