#include <algorithm>
#include <cstring>
#include <new>

#include "kcdata/records.hpp"
#include "stackshot/cycle_detector.hpp"
#include "stackshot/record_system.hpp"

namespace stackshot {

using namespace kcdata;

namespace {

/// snapshot_magic of a mem_and_io_snapshot (STACKSHOT_MEM_AND_IO_SNAPSHOT_MAGIC).
constexpr std::uint32_t mem_and_io_snapshot_magic = 0xbfcabcde;
/// A string record holds this many bytes at most; a longer string is cut, without its NUL.
constexpr std::size_t longest_string = 256;

kern_return append_string(Writer& writer, std::uint32_t type, const char* string) {
    std::size_t size = 0;
    while (size < longest_string && string[size] != '\0')
        ++size;
    if (size < longest_string)
        ++size;
    return writer.append(type, std::as_bytes(std::span(string, size)));
}

kern_return append_constant_facts(Writer& writer, const SystemFacts& facts) {
    kern_return error = KERN_SUCCESS;
    const auto ok = [&error](kern_return result) {
        error = result;
        return result == KERN_SUCCESS;
    };
    const mach_timebase_info timebase{facts.timebase.numer, facts.timebase.denom};
    if (!ok(writer.append_value(STACKSHOT_KCTYPE_THREAD_POLICY_VERSION, thread_policy_version)) ||
        !ok(writer.append_value(STACKSHOT_KCTYPE_KERN_PAGE_SIZE, facts.page_size)) ||
        !ok(append_string(writer, STACKSHOT_KCTYPE_OSVERSION, facts.os_version)) ||
        !ok(append_string(writer, STACKSHOT_KCTYPE_OS_BUILD_VERSION, facts.os_build_version)) ||
        !ok(append_string(writer, STACKSHOT_KCTYPE_BOOTARGS, facts.boot_args)))
        return error;
    return writer.append_value(KCDATA_TYPE_TIMEBASE, timebase);
}

kern_return append_memory_statistics(Writer& writer, const MemoryFacts& facts) {
    mem_and_io_snapshot snapshot{};
    snapshot.snapshot_magic = mem_and_io_snapshot_magic;
    snapshot.free_pages = facts.free_pages;
    snapshot.active_pages = facts.active_pages;
    snapshot.wired_pages = facts.wired_pages;
    return writer.append_value(STACKSHOT_KCTYPE_GLOBAL_MEM_STATS, snapshot);
}

/// Calls visit() with the facts of each object of a list, which next(previous, facts) goes through.
template <typename Facts, typename Ref, typename Next, typename Visit>
kern_return for_each_listed(Next next, Visit visit) {
    CycleDetector<Ref> circle;
    Facts facts;
    for (auto ref = next(Ref::none, facts);; ref = next(ref.value(), facts)) {
        if (!ref.ok())
            return ref.error();
        if (ref.value() == Ref::none)
            return KERN_SUCCESS;
        if (circle.step(ref.value()))
            return KERN_FAILURE;
        if (!visit(facts))
            return KERN_ABORTED;
    }
}

/// Appends an array of records, none if there is nothing to record, of the objects of a list.
template <typename Record, typename Facts, typename Ref, typename Next, typename Fill>
kern_return append_list(Writer& writer, std::uint32_t type, Next next, Fill fill) {
    std::size_t count = 0;
    const auto counting = [&count](const Facts&) { return ++count != 0; };
    if (const kern_return error = for_each_listed<Facts, Ref>(next, counting);
        error != KERN_SUCCESS || count == 0)
        return error;
    const auto records = writer.place_array<Record>(type, count);
    if (!records.ok())
        return records.error();
    std::size_t filled = 0;
    const kern_return error = for_each_listed<Facts, Ref>(next, [&](const Facts& facts) {
        if (filled == count)
            return false;
        fill(records.value()[filled++], facts);
        return true;
    });
    // A CPU that did not stop may have changed the list meanwhile.
    return error == KERN_SUCCESS && filled != count ? KERN_ABORTED : error;
}

kern_return append_thread_groups(Writer& writer, System& system, Quiesced& quiesced) {
    return append_list<thread_group_snapshot_v3, ThreadGroupFacts, ThreadGroupRef>(
        writer, STACKSHOT_KCTYPE_THREAD_GROUP_SNAPSHOT,
        [&](ThreadGroupRef previous, ThreadGroupFacts& facts) {
            return system.next_thread_group(quiesced, previous, facts);
        },
        [](thread_group_snapshot_v3& record, const ThreadGroupFacts& facts) {
            record.tgs_id = facts.id;
            record.tgs_flags = facts.flags;
            static_assert(sizeof(facts.name) ==
                          sizeof(record.tgs_name) + sizeof(record.tgs_name_cont));
            std::memcpy(record.tgs_name, facts.name, sizeof(record.tgs_name));
            std::memcpy(record.tgs_name_cont, facts.name + sizeof(record.tgs_name),
                        sizeof(record.tgs_name_cont));
        });
}

kern_return append_latencies(Writer& writer, std::span<const CpuLatency> latencies) {
    auto payload = writer.reserve_array(STACKSHOT_KCTYPE_LATENCY_INFO_CPU,
                                        sizeof(stackshot_latency_cpu), latencies.size());
    if (!payload.ok())
        return payload.error();
    std::byte* place = payload.value().data();
    for (const CpuLatency& cpu : latencies) {
        stackshot_latency_cpu element{};
        element.cpu_number = static_cast<std::int32_t>(cpu.cpu);
        element.cluster_type = static_cast<std::int32_t>(cpu.cluster_type);
        element.init_latency_mt = cpu.init;
        element.workqueue_latency_mt = cpu.work_queue;
        element.total_latency_mt = cpu.total;
        element.total_cycles = cpu.counters.cycles;
        element.total_instrs = cpu.counters.instructions;
        element.tasks_processed = cpu.counts.tasks;
        element.threads_processed = cpu.counts.threads;
        element.total_buf = cpu.buffer;
        element.intercluster_buf_used = cpu.borrowed;
        std::memcpy(place, &element, sizeof(element));
        place += sizeof(element);
    }
    return KERN_SUCCESS;
}

/// Version 2 of the record. Ended threads are no tasks of their own here.
kern_return append_latency(Writer& writer, const CollectionLatency& latency) {
    stackshot_latency_collection_v2 record{};
    record.latency_version = 2;
    record.setup_latency_mt = latency.setup;
    record.total_task_iteration_latency_mt = latency.task_iteration;
    record.task_queue_building_latency_mt = latency.queue_building;
    record.cpu_wait_latency_mt = latency.cpu_wait;
    record.main_cpu_number = static_cast<std::int32_t>(latency.main_cpu);
    record.calling_cpu_number = static_cast<std::int32_t>(latency.calling_cpu);
    record.buffer_size = latency.buffer_size;
    record.buffer_used = latency.buffer_used;
    record.buffer_overhead = latency.buffer_overhead;
    record.buffer_count = latency.buffer_count;
    return writer.append_value(STACKSHOT_KCTYPE_LATENCY_INFO, record);
}

}  // namespace

kern_return record_pre_task(Writer& writer, System& system, Quiesced& quiesced,
                            const Request& request, const PreTaskFacts& facts) {
    kern_return error = KERN_SUCCESS;
    const auto ok = [&error](kern_return result) {
        error = result;
        return result == KERN_SUCCESS;
    };
    if (!ok(writer.append_uint64_with_description("stackshot_in_flags", request.in_flags())) ||
        // The pid, as older releases; the last one stores the low half of the flags here.
        !ok(writer.append_uint32_with_description("stackshot_in_pid",
                                                  static_cast<std::uint32_t>(request.pid))) ||
        !ok(writer.append_uint64_with_description("system_state_flags", kKernel64_p)))
        return error;
    if (facts.size_estimate != 0 && (!ok(writer.append_uint32_with_description(
                                         "stackshot_size_estimate", facts.size_estimate)) ||
                                     !ok(writer.append_uint32_with_description(
                                         "stackshot_size_estimate_adj", facts.size_estimate_adj))))
        return error;
    // What never changes stands in the capture a delta goes on from.
    if (!ok(request.is_delta() ? writer.append_value(STACKSHOT_KCTYPE_DELTA_SINCE_TIMESTAMP,
                                                     request.delta_timestamp)
                               : append_constant_facts(writer, system.facts())) ||
        !ok(writer.append_value(KCDATA_TYPE_MACH_ABSOLUTE_TIME, facts.absolute_time)) ||
        !ok(writer.append_value(KCDATA_TYPE_USECS_SINCE_EPOCH, facts.usecs_since_epoch)))
        return error;
    if (request.has(STACKSHOT_GET_GLOBAL_MEM_STATS) &&
        !ok(append_memory_statistics(writer, system.memory_facts(quiesced))))
        return error;
    if (request.has(STACKSHOT_THREAD_GROUP) && !ok(append_thread_groups(writer, system, quiesced)))
        return error;
    // Not XNU's, which panics on such a CPU. Always there, so that 0 says that all CPUs stopped.
    return writer.append_uint64_with_description("stackshot_absent_cpus",
                                                 system.absent_cpus(quiesced));
}

kern_return record_coalitions(Writer& writer, System& system, Quiesced& quiesced) {
    return append_list<jetsam_coalition_snapshot, CoalitionFacts, CoalitionRef>(
        writer, STACKSHOT_KCTYPE_JETSAM_COALITION_SNAPSHOT,
        [&](CoalitionRef previous, CoalitionFacts& facts) {
            return system.next_coalition(quiesced, previous, facts);
        },
        [](jetsam_coalition_snapshot& record, const CoalitionFacts& facts) {
            record = {
                .jcs_id = facts.id,
                .jcs_flags = facts.flags,
                .jcs_thread_group = facts.thread_group_id,
                .jcs_leader_task_uniqueid = facts.leader_unique_pid,
            };
        });
}

std::size_t record_post_task_room(CpuIndex cpus) {
    // Counts and flags, tries, duration, latencies. Cannot overflow for any CpuIndex.
    return estimate_required_buffer_size(7, 4 * described_uint64_size +
                                                sizeof(stackshot_duration_v2) +
                                                sizeof(stackshot_latency_collection_v2) +
                                                cpus * sizeof(stackshot_latency_cpu))
        .value();
}

kern_return record_counts(Writer& writer, const Counts& counts) {
    const kern_return error =
        writer.append_uint64_with_description("stackshot_tasks_count", counts.tasks);
    return error != KERN_SUCCESS
               ? error
               : writer.append_uint64_with_description("stackshot_threads_count", counts.threads);
}

Result<std::span<std::byte>> record_post_task(Writer& writer, const Request& request,
                                              const PostTaskFacts& facts) {
    kern_return error = KERN_SUCCESS;
    const auto ok = [&error](kern_return result) {
        error = result;
        return result == KERN_SUCCESS;
    };
    if (request.wants_latencies() && (!ok(append_latencies(writer, facts.latencies)) ||
                                      !ok(append_latency(writer, facts.latency))))
        return error;
    auto duration =
        writer.reserve(STACKSHOT_KCTYPE_STACKSHOT_DURATION, sizeof(stackshot_duration_v2));
    if (!duration.ok())
        return duration.error();
    auto* record = new (duration.value().data())
        stackshot_duration_v2{facts.duration, 0, facts.prior_duration};
    // XNU leaves the tries out of a compressed buffer.
    if (!request.has(STACKSHOT_DO_COMPRESS) &&
        !ok(writer.append_uint64_with_description("stackshot_tries", facts.tries)))
        return error;
    if (!ok(writer.append_uint64_with_description("stackshot_out_flags", request.out_flags())))
        return error;
    return std::as_writable_bytes(std::span(&record->stackshot_duration_outer, 1));
}

}  // namespace stackshot
