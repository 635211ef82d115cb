#include <algorithm>
#include <cstring>

#include "kcdata/records.hpp"
#include "stackshot/record.hpp"

namespace stackshot {

using namespace kcdata;

namespace {

void fill(thread_snapshot_v4& snapshot, const ThreadFacts& thread, std::uint64_t ss_flags) {
    snapshot.ths_thread_id = thread.thread_id;
    snapshot.ths_wait_event = thread.blocked.wait_event;
    snapshot.ths_continuation = thread.continuation;
    snapshot.ths_total_syscalls = thread.total_syscalls;
    snapshot.ths_voucher_identifier = 0;
    snapshot.ths_dqserialnum = 0;
    snapshot.ths_user_time = thread.user_time;
    snapshot.ths_sys_time = thread.system_time;
    snapshot.ths_ss_flags = ss_flags;
    snapshot.ths_last_run_time = thread.last_run_time;
    snapshot.ths_last_made_runnable_time = thread.last_made_runnable_time;
    snapshot.ths_state = thread.state;
    snapshot.ths_sched_flags = thread.sched_flags;
    snapshot.ths_base_priority = thread.base_priority;
    snapshot.ths_sched_priority = thread.sched_priority;
    snapshot.ths_eqos = thread.effective_qos;
    snapshot.ths_rqos = thread.requested_qos;
    snapshot.ths_rqos_override = thread.requested_qos_override;
    snapshot.ths_io_tier = thread.io_tier;
    snapshot.ths_thread_t = thread.thread_address;
    snapshot.ths_requested_policy = thread.requested_policy;
    snapshot.ths_effective_policy = thread.effective_policy;
}

struct ThreadName {
    char text[thread_name_size];
};

/// XNU's flags for what a walk came to. The general one: the stack goes on, or may. The kernel
/// stack's: memory of it is missing.
std::uint64_t walk_flags(const Walk& walk) {
    std::uint64_t flags = walk.count != 0 ? kKernel64_p : 0;
    if (walk.truncated()) [[unlikely]]
        flags |= kThreadTruncatedBT;
    if (walk.end == WalkEnd::unreadable || walk.end == WalkEnd::exception_frame) [[unlikely]]
        flags |= kThreadTruncKernBT;
    return flags;
}

constexpr Description last_processor{"last_processor"};
constexpr Description on_absent_cpu{"on_absent_cpu"};
constexpr Description stack_high_water{"stack_high_water"};

}  // namespace

kern_return Recorder::record_stack(Writer& writer, std::uint64_t& ss_flags) {
    if (!thread_.has_stack)
        return KERN_SUCCESS;
    // Into the record itself, whose length is known only then; if that has no room, elsewhere.
    const auto room = writer.array_room<std::uint64_t>();
    Walk walk =
        unwinder_.walk(quiesced_, thread_.stack, room.first(std::min(room.size(), frames_.size())));
    const bool in_place = walk.end != WalkEnd::too_deep || room.size() >= frames_.size();
    if (!in_place) [[unlikely]]
        walk = unwinder_.walk(quiesced_, thread_.stack, frames_);
    ss_flags |= walk_flags(walk);
    counts_.frames += walk.count;
    if (walk.count == 0)
        return KERN_SUCCESS;
    if (!in_place)
        return writer.append_array<std::uint64_t>(STACKSHOT_KCTYPE_KERN_STACKLR64,
                                                  frames_.first(walk.count));
    const auto record =
        writer.place_array<std::uint64_t>(STACKSHOT_KCTYPE_KERN_STACKLR64, walk.count);
    return record.ok() ? KERN_SUCCESS : record.error();
}

kern_return Recorder::record_thread(Writer& writer, Stopwatch& stopwatch) {
    const ThreadFacts& thread = thread_;
    if (const kern_return error =
            writer.container_begin(STACKSHOT_KCCONTAINER_THREAD, thread.thread_id);
        error != KERN_SUCCESS)
        return error;
    const auto snapshot = writer.place<thread_snapshot_v4>(STACKSHOT_KCTYPE_THREAD_SNAPSHOT);
    if (!snapshot.ok())
        return snapshot.error();
    fill(*snapshot.value(), thread, thread.ss_flags);
    if (thread.dispatch_queue != DispatchQueueRef::none) [[unlikely]] {
        if (const kern_return error = record_dispatch_queue(writer, *snapshot.value());
            error != KERN_SUCCESS)
            return error;
    }
    const std::uint64_t snapshot_latency = stopwatch.lap();

    if (thread.name[0] != '\0') {
        const auto name = writer.place<ThreadName>(STACKSHOT_KCTYPE_THREAD_NAME);
        if (!name.ok())
            return name.error();
        static_assert(sizeof(thread.name) == thread_name_size);
        std::memcpy(name.value()->text, thread.name, thread_name_size);
    }
    const std::uint64_t name_latency = stopwatch.lap();

    const auto times = writer.place<stackshot_cpu_times_v2>(STACKSHOT_KCTYPE_CPU_TIMES);
    if (!times.ok())
        return times.error();
    times.value()->user_usec = microseconds_(thread.user_time);
    times.value()->system_usec = microseconds_(thread.system_time);
    times.value()->runnable_usec = microseconds_(thread.runnable_time);
    const std::uint64_t times_latency = stopwatch.lap();

    if (const kern_return error = record_stack(writer, snapshot.value()->ths_ss_flags);
        error != KERN_SUCCESS)
        return error;
    const std::uint64_t stack_latency = stopwatch.lap();

    if (has_details_ || thread.io_statistics != IoStatisticsRef::none) [[unlikely]] {
        if (const kern_return error = record_thread_details(writer); error != KERN_SUCCESS)
            return error;
    }
    // Not XNU's, whose thread snapshot does not tell the CPU. The CPU the thread is on or was on
    // last; with kThreadOnCore on a CPU of stackshot_absent_cpus, the stack is the last one known.
    if (thread.last_cpu != no_cpu) {
        if (const kern_return error =
                writer.append_uint32_with_description(last_processor, thread.last_cpu);
            error != KERN_SUCCESS)
            return error;
    }
    if (thread.last_cpu < max_cpus && (absent_ >> thread.last_cpu & 1) != 0 &&
        (thread.ss_flags & kThreadOnCore) != 0) [[unlikely]] {
        if (const kern_return error = writer.append_uint32_with_description(on_absent_cpu, 1);
            error != KERN_SUCCESS)
            return error;
    }

    if (stopwatch.on()) {
        const auto record =
            writer.place<stackshot_latency_thread>(STACKSHOT_KCTYPE_LATENCY_INFO_THREAD);
        if (!record.ok())
            return record.error();
        // The threads have no user stacks, and their snapshot is written at once.
        *record.value() = {
            .thread_id = thread.thread_id,
            .cur_thsnap1_latency = snapshot_latency,
            .dispatch_serial_latency = 0,
            .dispatch_label_latency = 0,
            .cur_thsnap2_latency = 0,
            .thread_name_latency = name_latency,
            .sur_times_latency = times_latency,
            .user_stack_latency = 0,
            .kernel_stack_latency = stack_latency,
            .misc_latency = stopwatch.lap(),
        };
    }
    ++counts_.threads;
    return writer.container_end(thread.thread_id);
}

kern_return Recorder::record_dispatch_queue(Writer& writer, thread_snapshot_v4& snapshot) {
    DispatchQueueFacts queue;
    if (!user_task_ || !request_.has(STACKSHOT_GET_DQ) ||
        !system_.dispatch_queue_facts(quiesced_, thread_.dispatch_queue, queue))
        return KERN_SUCCESS;
    snapshot.ths_dqserialnum = queue.serial;
    snapshot.ths_ss_flags |= kHasDispatchSerial;
    std::size_t length = 0;
    while (length < sizeof(queue.label) - 1 && queue.label[length] != '\0')
        ++length;
    static_assert(sizeof(queue.label) == longest_dispatch_queue_label);
    queue.label[length] = '\0';
    return length == 0 ? kern_return{KERN_SUCCESS}
                       : writer.append(STACKSHOT_KCTYPE_THREAD_DISPATCH_QUEUE_LABEL,
                                       std::as_bytes(std::span(queue.label, length + 1)));
}

kern_return Recorder::record_io(Writer& writer, IoStatisticsRef statistics) {
    if (!request_.wants_io_statistics())
        return KERN_SUCCESS;
    io_stats_snapshot snapshot;
    // There from the first request on, which need not be done.
    if (!system_.io_statistics(quiesced_, statistics, snapshot) ||
        (snapshot.ss_disk_reads_count | snapshot.ss_disk_writes_count) == 0)
        return KERN_SUCCESS;
    return writer.append_value(STACKSHOT_KCTYPE_IOSTATS, snapshot);
}

kern_return Recorder::record_thread_details(Writer& writer) {
    if (request_.has(STACKSHOT_THREAD_GROUP)) {
        if (const kern_return error =
                writer.append_value(STACKSHOT_KCTYPE_THREAD_GROUP, thread_.thread_group_id);
            error != KERN_SUCCESS)
            return error;
    }
    if (thread_.io_statistics != IoStatisticsRef::none) [[unlikely]] {
        if (const kern_return error = record_io(writer, thread_.io_statistics);
            error != KERN_SUCCESS)
            return error;
    }
    if (request_.has(STACKSHOT_INSTRS_CYCLES)) {
        const instrs_cycles_snapshot counters{thread_.counters.instructions,
                                              thread_.counters.cycles};
        if (const kern_return error = writer.append_value(STACKSHOT_KCTYPE_INSTRS_CYCLES, counters);
            error != KERN_SUCCESS)
            return error;
    }
    if (high_water_ && thread_.has_stack) [[unlikely]] {
        const std::uint32_t used = system_.stack_high_water(quiesced_, thread_.stack);
        if (used != 0)
            return writer.append_uint32_with_description(stack_high_water, used);
    }
    return KERN_SUCCESS;
}

kern_return Recorder::find_labels(ThreadWait& wait, RecordedTask& recorded) {
    const auto find = [&](PortLabelRef ref, const PortLabel*& label) {
        if (ref == PortLabelRef::none)
            return true;
        ++recorded.label_mentions;
        label = labels_.find(system_, quiesced_, ref);
        return label != nullptr;
    };
    return find(wait.facts.port_label, wait.label) &&
                   find(wait.facts.turnstile_port_label, wait.turnstile_label)
               ? KERN_SUCCESS
               : KERN_INSUFFICIENT_BUFFER_SIZE;
}

kern_return Recorder::record_wait(ThreadRef thread, RecordedTask& recorded) {
    if ((thread_.state & SS_TH_WAIT) == 0 || !request_.has(STACKSHOT_THREAD_WAITINFO))
        return KERN_SUCCESS;
    ThreadWait* const wait = waits_.place();
    if (wait == nullptr)
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    if (system_.wait_facts(quiesced_, thread, thread_.blocked, wait->facts)) {
        wait->thread_id = thread_.thread_id;
        wait->label = wait->turnstile_label = nullptr;
        if (wait->facts.port_label != PortLabelRef::none ||
            wait->facts.turnstile_port_label != PortLabelRef::none) [[unlikely]] {
            if (const kern_return error = find_labels(*wait, recorded); error != KERN_SUCCESS)
                return error;
        }
        waits_.add();
    }
    return KERN_SUCCESS;
}

}  // namespace stackshot
