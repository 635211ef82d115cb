#include <cstring>
#include <new>

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

kern_return append_task_snapshot(Writer& writer, const TaskFacts& task) {
    auto payload = writer.reserve(STACKSHOT_KCTYPE_TASK_SNAPSHOT, sizeof(task_snapshot_v2));
    if (!payload.ok())
        return payload.error();
    auto* record = new (payload.value().data()) task_snapshot_v2{};
    record->ts_unique_pid = task.unique_pid;
    record->ts_ss_flags = task.ss_flags | kUser64_p | kTaskSharedRegionNone;
    if (!task.active)
        record->ts_ss_flags |= kTerminatedSnapshot;
    record->ts_user_time_in_terminated_threads = task.user_time_in_terminated_threads;
    record->ts_system_time_in_terminated_threads = task.system_time_in_terminated_threads;
    record->ts_p_start_sec = task.start_seconds;
    record->ts_task_size = task.task_size;
    record->ts_max_resident_size = task.max_resident_size;
    record->ts_suspend_count = task.suspend_count;
    record->ts_faults = task.faults;
    record->ts_pid = task.pid;
    static_assert(sizeof(record->ts_p_comm) == sizeof(task.name));
    std::memcpy(record->ts_p_comm, task.name, sizeof(record->ts_p_comm));
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

    if (part.first == ThreadRef::none) {
        if (const kern_return error = begin_task(writer, facts); error != KERN_SUCCESS)
            return error;
        ++counts_.tasks;
    }
    if (const kern_return error = record_threads(writer, task, part); error != KERN_SUCCESS)
        return error;
    recorded = true;
    return part.end == ThreadRef::none ? writer.container_end(facts.unique_pid) : KERN_SUCCESS;
}

kern_return Recorder::begin_task(Writer& writer, const TaskFacts& facts) {
    if (const kern_return error =
            writer.container_begin(STACKSHOT_KCCONTAINER_TASK, facts.unique_pid);
        error != KERN_SUCCESS)
        return error;
    if (facts.is_kernel) {
        if (const kern_return error = append_kernel_load_info(writer, system_.facts());
            error != KERN_SUCCESS)
            return error;
    }
    return append_task_snapshot(writer, facts);
}

kern_return Recorder::record_threads(Writer& writer, TaskRef task, const TaskPart& part) {
    CycleDetector<ThreadRef> circle;
    Result<ThreadRef> next = part.first;
    if (part.first == ThreadRef::none)
        next = system_.next_thread(quiesced_, task, ThreadRef::none);
    for (;;) {
        if (!next.ok())
            return next.error();
        const ThreadRef thread = next.value();
        if (thread == part.end)
            return KERN_SUCCESS;
        if (thread == ThreadRef::none || circle.step(thread))
            return KERN_FAILURE;
        if (const kern_return error = record_thread(writer, thread); error != KERN_SUCCESS)
            return error;
        next = system_.next_thread(quiesced_, task, thread);
    }
}

}  // namespace stackshot
