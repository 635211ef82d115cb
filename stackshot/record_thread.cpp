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
    snapshot.ths_eqos = 0;
    snapshot.ths_rqos = 0;
    snapshot.ths_rqos_override = 0;
    snapshot.ths_io_tier = 0;
    snapshot.ths_thread_t = thread.thread_address;
    snapshot.ths_requested_policy = 0;
    snapshot.ths_effective_policy = 0;
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
        // The threads have no dispatch queues and no user stacks, and their snapshot is written at
        // once.
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

kern_return Recorder::record_wait(ThreadRef thread) {
    if ((thread_.state & SS_TH_WAIT) == 0 || !request_.has(STACKSHOT_THREAD_WAITINFO))
        return KERN_SUCCESS;
    ThreadWait* const wait = waits_.place();
    if (wait == nullptr)
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    if (system_.wait_facts(quiesced_, thread, thread_.blocked, wait->facts)) {
        wait->thread_id = thread_.thread_id;
        waits_.add();
    }
    return KERN_SUCCESS;
}

}  // namespace stackshot
