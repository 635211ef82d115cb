#include "kcdata/records.hpp"
#include "stackshot/record.hpp"

namespace stackshot {

using namespace kcdata;

namespace {

void fill(thread_delta_snapshot_v3& snapshot, const ThreadFacts& thread) {
    snapshot = {};
    snapshot.tds_thread_id = thread.thread_id;
    snapshot.tds_ss_flags = thread.ss_flags;
    snapshot.tds_last_made_runnable_time = thread.last_made_runnable_time;
    snapshot.tds_state = thread.state;
    snapshot.tds_sched_flags = thread.sched_flags;
    snapshot.tds_base_priority = thread.base_priority;
    snapshot.tds_sched_priority = thread.sched_priority;
    snapshot.tds_eqos = thread.effective_qos;
    snapshot.tds_rqos = thread.requested_qos;
    snapshot.tds_rqos_override = thread.requested_qos_override;
    snapshot.tds_io_tier = thread.io_tier;
    snapshot.tds_requested_policy = thread.requested_policy;
    snapshot.tds_effective_policy = thread.effective_policy;
}

}  // namespace

bool Recorder::is_unchanged(const ThreadFacts& thread) const {
    if (!request_.is_delta() || thread.last_run_time > request_.delta_timestamp) [[likely]]
        return false;
    // On core: running, or what runs on its CPU when nothing else does.
    if ((thread.ss_flags & kThreadOnCore) != 0 || (thread.state & SS_TH_IDLE) != 0)
        return false;
    // A CPU that did not stop may be running the thread without anyone knowing.
    return thread.last_cpu >= max_cpus || (absent_ >> thread.last_cpu & 1) == 0;
}

bool Recorder::is_changed(const TaskFacts& task, const ThreadCounts& threads) const {
    return !request_.is_delta() || !task.active || task.start_time == 0 ||
           task.start_time > request_.delta_timestamp || threads.changed != 0;
}

kern_return Recorder::count_threads(const TaskFacts& task, ThreadCounts& counts) {
    return for_each_thread({}, task.first_thread, [&](ThreadRef) {
        if (!leaves_out(thread_))
            ++(is_unchanged(thread_) ? counts.unchanged : counts.changed);
        return KERN_SUCCESS;
    });
}

kern_return Recorder::append_task_delta_snapshot(Writer& writer, const TaskFacts& task) {
    auto record = writer.place<task_delta_snapshot_v2>(STACKSHOT_KCTYPE_TASK_DELTA_SNAPSHOT);
    if (!record.ok())
        return record.error();
    task_delta_snapshot_v2& snapshot = *record.value();
    snapshot = {};
    snapshot.tds_unique_pid = task.unique_pid;
    snapshot.tds_ss_flags = recorded_flags(task);
    snapshot.tds_user_time_in_terminated_threads = task.user_time_in_terminated_threads;
    snapshot.tds_system_time_in_terminated_threads = task.system_time_in_terminated_threads;
    snapshot.tds_task_size = task.task_size;
    snapshot.tds_max_resident_size = task.max_resident_size;
    snapshot.tds_suspend_count = task.suspend_count;
    snapshot.tds_faults = task.faults;
    return record_counters(writer, task);
}

kern_return Recorder::append_unchanged_threads(Writer& writer, const TaskFacts& task,
                                               std::size_t count) {
    auto records =
        writer.place_array<thread_delta_snapshot_v3>(STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT, count);
    if (!records.ok())
        return records.error();
    std::size_t filled = 0;
    const kern_return error = for_each_thread({}, task.first_thread, [&](ThreadRef) {
        if (leaves_out(thread_) || !is_unchanged(thread_))
            return KERN_SUCCESS;
        if (filled == count)
            return KERN_ABORTED;
        fill(records.value()[filled++], thread_);
        return KERN_SUCCESS;
    });
    if (error != KERN_SUCCESS)
        return error;
    counts_.threads += count;
    // A CPU that did not stop has changed a thread meanwhile.
    return filled == count ? KERN_SUCCESS : KERN_ABORTED;
}

}  // namespace stackshot
