#include "stackshot/estimate.hpp"

#include <algorithm>

#include "kcdata/format.hpp"
#include "kcdata/records.hpp"
#include "stackshot/chunk_chain.hpp"
#include "stackshot/port_label.hpp"
#include "stackshot/post_trap_producer.hpp"
#include "stackshot/record_system.hpp"
#include "stackshot/unwind.hpp"
#include "stackshot/wait_log.hpp"
#include "stackshot/work_queue.hpp"

namespace stackshot {

namespace {

using kcdata::alignment;
using kcdata::item_size;

constexpr std::size_t container = item_size(sizeof(std::uint32_t)) + item_size(0);

/// Return addresses a thread is expected to have.
constexpr std::size_t expected_frames = 32;
constexpr std::size_t per_thread = container + item_size(sizeof(kcdata::thread_snapshot_v4)) +
                                   item_size(kcdata::thread_name_size) +
                                   item_size(sizeof(kcdata::stackshot_cpu_times_v2)) +
                                   item_size(kcdata::description_size + sizeof(std::uint32_t)) +
                                   item_size(expected_frames * sizeof(std::uint64_t));
constexpr std::size_t per_task = container + item_size(sizeof(kcdata::task_snapshot_v2)) +
                                 item_size(sizeof(kcdata::dyld_uuid_info_64)) +
                                 item_size(sizeof(std::uint64_t));

/// What more a thread and a task have when a flag asks for it.
constexpr std::size_t per_thread_group = item_size(sizeof(std::uint64_t));
constexpr std::size_t per_thread_counters = item_size(sizeof(kcdata::instrs_cycles_snapshot));
constexpr std::size_t per_task_counters = item_size(sizeof(kcdata::instrs_cycles_snapshot_v2));
constexpr std::size_t per_thread_high_water =
    item_size(kcdata::description_size + sizeof(std::uint32_t));
/// Port labels a system is expected to have, each found by every CPU.
constexpr std::size_t expected_labels = 16;

constexpr std::size_t per_task_latency = item_size(sizeof(kcdata::stackshot_latency_task));
constexpr std::size_t per_thread_latency = item_size(sizeof(kcdata::stackshot_latency_thread));

/// What a waiting thread takes in the log, or in the arrays of its task, and a task besides.
constexpr std::size_t per_wait =
    std::max(sizeof(ThreadWait), sizeof(kcdata::stackshot_thread_waitinfo_v2) +
                                     sizeof(kcdata::stackshot_thread_turnstileinfo_v2));
constexpr std::size_t per_task_waits = 2 * item_size(alignment - 1);

constexpr std::size_t fudge(std::size_t size, std::uint32_t percent) {
    return size / 100 * (100 + percent) + size % 100 * (100 + percent) / 100;
}

}  // namespace

std::size_t max_tracebuf_size(const SystemFacts& facts) {
    constexpr std::size_t MiB = std::size_t{1} << 20;
    constexpr std::uint64_t GiB = std::uint64_t{1} << 30;
    if (facts.tunables.max_tracebuf_size != 0)
        return facts.tunables.max_tracebuf_size;
    const std::uint64_t gibibytes = facts.memory_size / GiB + (facts.memory_size % GiB != 0);
    return std::max<std::size_t>(8 * MiB, MiB * static_cast<std::size_t>(gibibytes));
}

Estimate estimate_stackshot(const SystemFacts& facts, std::size_t tasks, std::size_t threads,
                            const Request& request) {
    const std::uint32_t adj = std::min<std::uint32_t>(facts.tunables.estimate_adj, 100);
    tasks = std::max<std::size_t>(tasks, 1);
    const std::size_t threads_per_task = (threads + tasks - 1) / tasks;

    Estimate estimate;
    estimate.adj = adj;
    estimate.threads = threads;
    estimate.smallest_chunk = per_task + threads_per_task * per_thread;
    if (request.wants_latencies())
        estimate.smallest_chunk += per_task_latency + threads_per_task * per_thread_latency;
    if (request.has(kcdata::STACKSHOT_THREAD_GROUP))
        estimate.smallest_chunk += threads_per_task * per_thread_group;
    if (request.has(kcdata::STACKSHOT_INSTRS_CYCLES))
        estimate.smallest_chunk += per_task_counters + threads_per_task * per_thread_counters;
    if (facts.tunables.stack_high_water)
        estimate.smallest_chunk += threads_per_task * per_thread_high_water;
    // Besides the percentage a fixed number: few tasks double easily.
    estimate.queue_capacity = fudge(tasks, 10) + 16;

    const std::size_t chunk = fudge(estimate.smallest_chunk, adj) + sizeof(Chunk);
    std::size_t size = record_pre_task_room + record_post_task_room(facts.cpu_count);
    for (PostTrapProducer* producer : facts.post_trap_producers)
        size += producer->room(request);
    size += facts.cpu_count * Unwinder::max_frames * sizeof(std::uint64_t);
    size += WorkQueues::storage_size(estimate.queue_capacity + max_extra_parts(facts.cpu_count),
                                     WorkQueues::max_queues);
    if (request.has(kcdata::STACKSHOT_THREAD_WAITINFO))
        size += facts.cpu_count * (sizeof(WaitLog::Block) + expected_labels * sizeof(PortLabel)) +
                PortLabelTable::room(expected_labels) + threads * per_wait + tasks * per_task_waits;
    size += chunk * (request.process_scoped() ? 1 : tasks);
    size = fudge(size, adj);
    if (request.size_hint <= max_tracebuf_size(facts))
        size = std::max<std::size_t>(size, request.size_hint);
    const std::size_t page = std::max<std::size_t>(facts.page_size, 1);
    estimate.size = (size + page - 1) / page * page;
    return estimate;
}

}  // namespace stackshot
