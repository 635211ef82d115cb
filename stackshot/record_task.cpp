#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "kcdata/records.hpp"
#include "stackshot/record.hpp"

namespace stackshot {

using namespace kcdata;

namespace {

/// A task that is gone but for its name is not shown.
bool is_remnant(const TaskFacts& task) {
    return !task.active && (task.thread_count == 0 || task.pid == -1);
}

kern_return append_kernel_load_info(Writer& writer, const SystemFacts& facts) {
    dyld_uuid_info_64 image{};
    image.imageLoadAddress = facts.kernel_load_address;
    static_assert(sizeof(image.imageUUID) == sizeof(facts.kernel_uuid));
    std::memcpy(image.imageUUID, facts.kernel_uuid, sizeof(image.imageUUID));
    return writer.append_value(STACKSHOT_KCTYPE_KERNELCACHE_LOADINFO, image);
}

kern_return append_transitioning_task_snapshot(Writer& writer, const TaskFacts& task,
                                               std::uint64_t ss_flags) {
    auto record =
        writer.place<transitioning_task_snapshot>(STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT);
    if (!record.ok())
        return record.error();
    transitioning_task_snapshot& snapshot = *record.value();
    snapshot = {};
    snapshot.tts_unique_pid = task.unique_pid;
    snapshot.tts_ss_flags = ss_flags;
    snapshot.tts_transition_type = kTaskIsTerminated;
    snapshot.tts_pid = task.pid;
    static_assert(sizeof(snapshot.tts_p_comm) == sizeof(task.name));
    std::memcpy(snapshot.tts_p_comm, task.name, sizeof(snapshot.tts_p_comm));
    return KERN_SUCCESS;
}

kern_return append_task_snapshot(Writer& writer, const TaskFacts& task, std::uint64_t ss_flags) {
    auto record = writer.place<task_snapshot_v2>(STACKSHOT_KCTYPE_TASK_SNAPSHOT);
    if (!record.ok())
        return record.error();
    task_snapshot_v2& snapshot = *record.value();
    snapshot = {};
    snapshot.ts_unique_pid = task.unique_pid;
    snapshot.ts_ss_flags = ss_flags;
    snapshot.ts_user_time_in_terminated_threads = task.user_time_in_terminated_threads;
    snapshot.ts_system_time_in_terminated_threads = task.system_time_in_terminated_threads;
    snapshot.ts_p_start_sec = task.start_seconds;
    snapshot.ts_task_size = task.task_size;
    snapshot.ts_max_resident_size = task.max_resident_size;
    snapshot.ts_suspend_count = task.suspend_count;
    snapshot.ts_faults = task.faults;
    snapshot.ts_pid = task.pid;
    static_assert(sizeof(snapshot.ts_p_comm) == sizeof(task.name));
    std::memcpy(snapshot.ts_p_comm, task.name, sizeof(snapshot.ts_p_comm));
    return KERN_SUCCESS;
}

}  // namespace

kern_return Recorder::record_task(Writer& writer, TaskRef task, const TaskPart& part,
                                  RecordedTask& recorded) {
    recorded = {};
    Stopwatch stopwatch(system_, request_.wants_latencies());
    TaskFacts facts;
    if (const kern_return error = system_.task_facts(quiesced_, task, facts); error != KERN_SUCCESS)
        return traced(system_, error);
    if (!request_.wants(facts.pid) || is_remnant(facts))
        return KERN_SUCCESS;
    recorded.wanted = true;
    recorded.unique_pid = facts.unique_pid;
    TaskLatency& latency = recorded.latency;
    latency.setup = stopwatch.lap();
    user_task_ = facts.active && !facts.is_kernel;

    const bool from_beginning = part.first == ThreadRef::none;
    if (from_beginning) {
        if (const kern_return error = begin_task(writer, facts, stopwatch, latency);
            error != KERN_SUCCESS)
            return traced(system_, error);
        if (facts.donates_importance && request_.has(STACKSHOT_SAVE_IMP_DONATION_PIDS)) {
            if (const kern_return error = find_donating_pids(task, recorded); error != KERN_SUCCESS)
                return traced(system_, error);
        }
        ++counts_.tasks;
        latency.snapshot = stopwatch.lap();
    }
    Stopwatch of_thread(system_, request_.wants_latencies());
    if (const kern_return error = for_each_thread(
            part, from_beginning ? facts.first_thread : part.first,
            [&](ThreadRef thread) {
                if (leaves_out(thread_))
                    return kern_return{KERN_SUCCESS};
                const kern_return result = is_unchanged(thread_) ? kern_return{KERN_SUCCESS}
                                                                 : record_thread(writer, of_thread);
                return result != KERN_SUCCESS ? result : record_wait(thread, recorded);
            });
        error != KERN_SUCCESS)
        return error;
    recorded.waits = waits_.finish();
    latency.threads = stopwatch.lap();
    return KERN_SUCCESS;
}

kern_return Recorder::begin_task(Writer& writer, const TaskFacts& facts, Stopwatch& stopwatch,
                                 TaskLatency& latency) {
    ThreadCounts threads;
    if (request_.is_delta()) {
        if (const kern_return error = count_threads(facts, threads); error != KERN_SUCCESS)
            return error;
        latency.count = stopwatch.lap();
    }
    // Teardown is the only transition there is.
    if (const kern_return error = writer.container_begin(
            facts.active ? STACKSHOT_KCCONTAINER_TASK : STACKSHOT_KCCONTAINER_TRANSITIONING_TASK,
            facts.unique_pid);
        error != KERN_SUCCESS)
        return error;
    if (const kern_return error = is_changed(facts, threads)
                                      ? append_task_records(writer, facts)
                                      : append_task_delta_snapshot(writer, facts);
        error != KERN_SUCCESS)
        return error;
    return threads.unchanged != 0 ? append_unchanged_threads(writer, facts, threads.unchanged)
                                  : KERN_SUCCESS;
}

kern_return Recorder::append_task_records(Writer& writer, const TaskFacts& facts) {
    if (facts.is_kernel) {
        if (const kern_return error = append_kernel_load_info(writer, system_.facts());
            error != KERN_SUCCESS)
            return error;
    }
    if (!facts.active)
        return append_transitioning_task_snapshot(writer, facts, recorded_flags(facts));
    kern_return error = append_task_snapshot(writer, facts, recorded_flags(facts));
    if (error == KERN_SUCCESS)
        error = writer.append_value(STACKSHOT_KCTYPE_JETSAM_COALITION, facts.coalition_id);
    if (error == KERN_SUCCESS && facts.io_statistics != IoStatisticsRef::none)
        error = record_io(writer, facts.io_statistics);
    return error == KERN_SUCCESS ? record_counters(writer, facts) : error;
}

kern_return Recorder::record_counters(Writer& writer, const TaskFacts& task) {
    if (!request_.has(STACKSHOT_INSTRS_CYCLES))
        return KERN_SUCCESS;
    const instrs_cycles_snapshot_v2 counters{
        .ics_instructions = task.counters.instructions,
        .ics_cycles = task.counters.cycles,
        .ics_p_instructions = task.counters_on_p_cores.instructions,
        .ics_p_cycles = task.counters_on_p_cores.cycles,
    };
    return writer.append_value(STACKSHOT_KCTYPE_INSTRS_CYCLES, counters);
}

kern_return Recorder::find_donating_pids(TaskRef task, RecordedTask& recorded) {
    // XNU's number of them.
    std::array<std::int32_t, 20> pids;
    const std::size_t count = system_.donating_pids(quiesced_, task, pids);
    if (count == 0)
        return KERN_SUCCESS;
    const auto room = memory_.allocate(count * sizeof(pids[0]));
    if (room.size() < count * sizeof(pids[0]))
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    auto* const kept = new (room.data()) std::int32_t[count];
    std::copy_n(pids.data(), count, kept);
    recorded.donating_pids = {kept, count};
    return KERN_SUCCESS;
}

std::uint64_t Recorder::recorded_flags(const TaskFacts& task) {
    return task.ss_flags | kUser64_p | kTaskSharedRegionNone |
           (task.active ? 0 : kTerminatedSnapshot);
}

}  // namespace stackshot
