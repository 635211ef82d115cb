#include <cstring>

#include "kcdata/records.hpp"
#include "stackshot/cycle_detector.hpp"
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

std::uint64_t ss_flags_of(const TaskFacts& task) {
    return task.ss_flags | kUser64_p | kTaskSharedRegionNone |
           (task.active ? 0 : kTerminatedSnapshot);
}

kern_return append_transitioning_task_snapshot(Writer& writer, const TaskFacts& task) {
    auto record =
        writer.place<transitioning_task_snapshot>(STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT);
    if (!record.ok())
        return record.error();
    transitioning_task_snapshot& snapshot = *record.value();
    snapshot = {};
    snapshot.tts_unique_pid = task.unique_pid;
    snapshot.tts_ss_flags = ss_flags_of(task);
    snapshot.tts_transition_type = kTaskIsTerminated;
    snapshot.tts_pid = task.pid;
    static_assert(sizeof(snapshot.tts_p_comm) == sizeof(task.name));
    std::memcpy(snapshot.tts_p_comm, task.name, sizeof(snapshot.tts_p_comm));
    return KERN_SUCCESS;
}

kern_return append_task_snapshot(Writer& writer, const TaskFacts& task) {
    auto record = writer.place<task_snapshot_v2>(STACKSHOT_KCTYPE_TASK_SNAPSHOT);
    if (!record.ok())
        return record.error();
    task_snapshot_v2& snapshot = *record.value();
    snapshot = {};
    snapshot.ts_unique_pid = task.unique_pid;
    snapshot.ts_ss_flags = ss_flags_of(task);
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
                                  bool& recorded) {
    recorded = false;
    TaskFacts facts;
    if (const kern_return error = system_.task_facts(quiesced_, task, facts); error != KERN_SUCCESS)
        return error;
    if (!request_.wants(facts.pid) || is_remnant(facts))
        return KERN_SUCCESS;

    const bool from_beginning = part.first == ThreadRef::none;
    if (from_beginning) {
        if (const kern_return error = begin_task(writer, facts); error != KERN_SUCCESS)
            return error;
        ++counts_.tasks;
    }
    if (const kern_return error =
            record_threads(writer, part, from_beginning ? facts.first_thread : part.first);
        error != KERN_SUCCESS)
        return error;
    recorded = true;
    return part.end == ThreadRef::none ? writer.container_end(facts.unique_pid) : KERN_SUCCESS;
}

kern_return Recorder::begin_task(Writer& writer, const TaskFacts& facts) {
    // Teardown is the only transition there is.
    if (const kern_return error = writer.container_begin(
            facts.active ? STACKSHOT_KCCONTAINER_TASK : STACKSHOT_KCCONTAINER_TRANSITIONING_TASK,
            facts.unique_pid);
        error != KERN_SUCCESS)
        return error;
    if (facts.is_kernel) {
        if (const kern_return error = append_kernel_load_info(writer, system_.facts());
            error != KERN_SUCCESS)
            return error;
    }
    return facts.active ? append_task_snapshot(writer, facts)
                        : append_transitioning_task_snapshot(writer, facts);
}

kern_return Recorder::record_threads(Writer& writer, const TaskPart& part, ThreadRef first) {
    CycleDetector<ThreadRef> circle;
    ThreadRef previous = ThreadRef::none;
    for (ThreadRef thread = first; thread != part.end; thread = thread_.next) {
        if (thread == ThreadRef::none || circle.step(thread))
            return KERN_FAILURE;
        if (const kern_return error = system_.thread_facts(quiesced_, thread, thread_);
            error != KERN_SUCCESS)
            return error;
        // What lies in front of a part is not known.
        if (thread_.previous != previous && thread != part.first)
            return KERN_FAILURE;
        if (const kern_return error = record_thread(writer); error != KERN_SUCCESS)
            return error;
        previous = thread;
    }
    return KERN_SUCCESS;
}

}  // namespace stackshot
