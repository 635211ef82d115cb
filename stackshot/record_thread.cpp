#include <cstring>
#include <new>

#include "kcdata/records.hpp"
#include "stackshot/record.hpp"

namespace stackshot {

using namespace kcdata;

namespace {

/// Absolute time in microseconds, rounded down.
std::uint64_t microseconds(std::uint64_t time, const Timebase& timebase) {
    constexpr std::uint64_t per_microsecond = 1000;
    // In two parts, as time * numer may not fit.
    return (time / timebase.denom * timebase.numer +
            time % timebase.denom * timebase.numer / timebase.denom) /
           per_microsecond;
}

kern_return append_thread_snapshot(Writer& writer, const ThreadFacts& thread,
                                   std::uint64_t ss_flags) {
    auto payload = writer.reserve(STACKSHOT_KCTYPE_THREAD_SNAPSHOT, sizeof(thread_snapshot_v4));
    if (!payload.ok())
        return payload.error();
    auto* record = new (payload.value().data()) thread_snapshot_v4{};
    record->ths_thread_id = thread.thread_id;
    record->ths_wait_event = thread.wait_event;
    record->ths_continuation = thread.continuation;
    record->ths_total_syscalls = thread.total_syscalls;
    record->ths_user_time = thread.user_time;
    record->ths_sys_time = thread.system_time;
    record->ths_ss_flags = ss_flags;
    record->ths_last_run_time = thread.last_run_time;
    record->ths_last_made_runnable_time = thread.last_made_runnable_time;
    record->ths_state = thread.state;
    record->ths_sched_flags = thread.sched_flags;
    record->ths_base_priority = thread.base_priority;
    record->ths_sched_priority = thread.sched_priority;
    record->ths_thread_t = thread.thread_address;
    return KERN_SUCCESS;
}

kern_return append_cpu_times(Writer& writer, const ThreadFacts& thread, const Timebase& timebase) {
    auto payload = writer.reserve(STACKSHOT_KCTYPE_CPU_TIMES, sizeof(stackshot_cpu_times_v2));
    if (!payload.ok())
        return payload.error();
    new (payload.value().data()) stackshot_cpu_times_v2{
        microseconds(thread.user_time, timebase), microseconds(thread.system_time, timebase),
        microseconds(thread.runnable_time, timebase)};
    return KERN_SUCCESS;
}

}  // namespace

kern_return Recorder::record_thread(Writer& writer, ThreadRef ref) {
    ThreadFacts thread;
    if (const kern_return error = system_.thread_facts(quiesced_, ref, thread);
        error != KERN_SUCCESS)
        return error;
    StackFacts stack;
    const kern_return has_stack = system_.stack_facts(quiesced_, ref, stack);
    if (has_stack != KERN_SUCCESS && has_stack != KERN_NOT_IN_SET)
        return has_stack;
    if (has_stack != KERN_SUCCESS && request_.has(STACKSHOT_ACTIVE_KERNEL_THREADS_ONLY))
        return KERN_SUCCESS;

    Walk walk;
    if (has_stack == KERN_SUCCESS)
        walk = unwinder_.walk(quiesced_, stack, frames_);
    std::uint64_t ss_flags = thread.ss_flags;
    if (walk.count != 0)
        ss_flags |= kKernel64_p;
    if (walk.truncated())
        ss_flags |= kThreadTruncatedBT | kThreadTruncKernBT;

    kern_return error = KERN_SUCCESS;
    const auto ok = [&error](kern_return result) {
        error = result;
        return result == KERN_SUCCESS;
    };
    if (!ok(writer.container_begin(STACKSHOT_KCCONTAINER_THREAD, thread.thread_id)) ||
        !ok(append_thread_snapshot(writer, thread, ss_flags)))
        return error;
    static_assert(sizeof(thread.name) == thread_name_size);
    if (thread.name[0] != '\0' &&
        !ok(writer.append(STACKSHOT_KCTYPE_THREAD_NAME, std::as_bytes(std::span(thread.name)))))
        return error;
    if (!ok(append_cpu_times(writer, thread, system_.facts().timebase)))
        return error;
    if (walk.count != 0 && !ok(writer.append_array<std::uint64_t>(STACKSHOT_KCTYPE_KERN_STACKLR64,
                                                                  frames_.first(walk.count))))
        return error;
    // Not XNU's, whose thread snapshot does not tell the CPU. The CPU the thread is on or was on
    // last; with kThreadOnCore on a CPU of stackshot_absent_cpus, the stack is the last one known.
    if (thread.last_cpu != no_cpu &&
        !ok(writer.append_uint32_with_description("last_processor", thread.last_cpu)))
        return error;
    if (thread.last_cpu < max_cpus && (absent_ >> thread.last_cpu & 1) != 0 &&
        (thread.ss_flags & kThreadOnCore) != 0 &&
        !ok(writer.append_uint32_with_description("on_absent_cpu", 1)))
        return error;
    ++counts_.threads;
    counts_.frames += walk.count;
    return writer.container_end(thread.thread_id);
}

}  // namespace stackshot
