#include "stackshot/record_task_end.hpp"

#include "kcdata/format.hpp"

namespace stackshot {

using namespace kcdata;

std::size_t record_task_end_room(const TaskEnd& end) {
    return item_size(end.waits * sizeof(stackshot_thread_waitinfo_v2)) +
           item_size(end.waits * sizeof(stackshot_thread_turnstileinfo_v2)) +
           PortLabelTable::room(end.label_mentions) + item_size(end.donating_pids.size_bytes()) +
           item_size(sizeof(stackshot_latency_task)) + item_size(0);
}

kern_return WaitArrays::place(Writer& writer, std::size_t count) {
    if (count == 0)
        return KERN_SUCCESS;
    const auto wait_infos =
        writer.place_array<stackshot_thread_waitinfo_v2>(STACKSHOT_KCTYPE_THREAD_WAITINFO, count);
    if (!wait_infos.ok())
        return wait_infos.error();
    const auto turnstile_infos = writer.place_array<stackshot_thread_turnstileinfo_v2>(
        STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO, count);
    if (!turnstile_infos.ok())
        return turnstile_infos.error();
    wait_infos_ = wait_infos.value();
    turnstile_infos_ = turnstile_infos.value();
    return KERN_SUCCESS;
}

void WaitArrays::add(const WaitLog::Range& waits, PortLabelTable& labels) {
    waits.for_each([&](const ThreadWait& wait) {
        const WaitFacts& facts = wait.facts;
        wait_infos_[filled_] = {
            .owner = facts.owner,
            .waiter = wait.thread_id,
            .context = facts.context,
            .wait_type = facts.wait_type,
            .portlabel_id = labels.mention(wait.label),
            .wait_flags = facts.wait_flags,
        };
        turnstile_infos_[filled_++] = {
            .waiter = wait.thread_id,
            .turnstile_context = facts.turnstile_context,
            .turnstile_priority = facts.turnstile_priority,
            .number_of_hops = facts.number_of_hops,
            .turnstile_flags = facts.turnstile_flags,
            .portlabel_id = labels.mention(wait.turnstile_label),
        };
    });
}

kern_return record_donating_pids(Writer& writer, const TaskEnd& end) {
    return end.donating_pids.empty()
               ? kern_return{KERN_SUCCESS}
               : writer.append_array(STACKSHOT_KCTYPE_DONATING_PIDS, end.donating_pids);
}

kern_return record_task_latency(Writer& writer, const TaskEnd& end) {
    const auto record = writer.place<stackshot_latency_task>(STACKSHOT_KCTYPE_LATENCY_INFO_TASK);
    if (!record.ok())
        return record.error();
    *record.value() = {};
    record.value()->task_uniqueid = end.unique_pid;
    record.value()->setup_latency = end.latency.setup;
    record.value()->task_thread_count_loop_latency = end.latency.count;
    record.value()->cur_tsnap_latency = end.latency.snapshot;
    record.value()->task_thread_data_loop_latency = end.latency.threads;
    return KERN_SUCCESS;
}

}  // namespace stackshot
