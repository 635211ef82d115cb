#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kcdata/records.hpp"

namespace tools {

/// A stackshot as tasks, threads and stacks. Whatever a capture may lack is optional, and stays
/// empty where it does; records that are not known are passed over.

/// Times in absolute time unless the name says otherwise.
struct ThreadSnapshot {
    std::uint64_t id = 0;
    std::string name{};
    std::optional<std::uint32_t> state{};     ///< SS_TH_*
    std::optional<std::uint64_t> ss_flags{};  ///< thread_snapshot_flags
    std::optional<std::uint64_t> wait_event{};
    std::optional<std::uint64_t> last_run_time{};
    std::optional<std::uint64_t> last_made_runnable_time{};
    std::optional<std::int16_t> base_priority{};
    std::optional<std::int16_t> sched_priority{};
    std::optional<std::uint64_t> user_usec{};
    std::optional<std::uint64_t> system_usec{};
    std::optional<std::uint64_t> runnable_usec{};
    std::optional<std::uint64_t> user_time{};
    std::optional<std::uint64_t> system_time{};
    std::optional<std::uint64_t> continuation{};  ///< 0: none
    std::optional<std::uint8_t> effective_qos{};
    std::optional<std::uint8_t> requested_qos{};
    std::string dispatch_queue_label{};  ///< empty: none
    /// The CPU it is on, or was on last.
    std::optional<std::uint32_t> last_processor{};
    /// On a CPU that did not stop: the stack is the last one known.
    bool on_absent_cpu = false;
    /// First where the thread stands, then return addresses; nothing: not recorded.
    std::optional<std::vector<std::uint64_t>> kernel_stack{};
    std::optional<std::vector<std::uint64_t>> user_stack{};
    /// How long the parts of its record took.
    std::optional<kcdata::stackshot_latency_thread> latency{};
    /// From the capture that a delta stackshot goes on from: it has not run since.
    bool unchanged = false;

    bool has(std::uint64_t flag) const { return (ss_flags.value_or(0) & flag) != 0; }
};

/// A STACKSHOT_KCTYPE_THREAD_WAITINFO: what a thread waits for. Fields as in
/// kcdata::stackshot_thread_waitinfo_v2; the last two are 0 in records that do not have them.
struct WaitInfo {
    std::uint64_t waiter = 0;
    std::uint64_t owner = 0;
    std::uint64_t context = 0;
    std::uint8_t wait_type = 0;
    std::int16_t portlabel_id = 0;
    std::uint32_t wait_flags = 0;
};

/// A STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO, as kcdata::stackshot_thread_turnstileinfo_v2.
struct TurnstileInfo {
    std::uint64_t waiter = 0;
    std::uint64_t turnstile_context = 0;
    std::uint8_t turnstile_priority = 0;
    std::uint8_t number_of_hops = 0;
    std::uint64_t turnstile_flags = 0;
    std::int16_t portlabel_id = 0;
};

struct PortLabel {
    std::int16_t id = 0;
    std::uint16_t flags = 0;
    std::uint8_t domain = 0;
    std::string name{};  ///< empty: could not be read
};

/// An image in memory: where it begins, and which it is. Of the unikernel: the address it is linked
/// at, and the first 16 bytes of its GNU build-id.
struct LoadInfo {
    std::uint64_t address = 0;
    std::array<std::uint8_t, 16> uuid{};
};

struct TaskSnapshot {
    std::uint64_t unique_pid = 0;
    std::optional<std::int32_t> pid{};
    std::string name{};
    std::optional<std::uint64_t> ss_flags{};
    /// Nothing of it has run since the capture that a delta stackshot goes on from.
    bool unchanged = false;
    std::optional<std::uint64_t> user_time_in_terminated_threads{};
    std::optional<std::uint64_t> system_time_in_terminated_threads{};
    /// The record as it stands; of a task that is replaced or torn down, or unchanged, there is
    /// none.
    std::optional<kcdata::task_snapshot_v2> record{};
    std::vector<ThreadSnapshot> threads{};
    /// Of a delta stackshot: threads that have not run since; without name, times and stack.
    std::vector<ThreadSnapshot> unchanged_threads{};
    std::vector<WaitInfo> wait_infos{};
    std::vector<TurnstileInfo> turnstile_infos{};
    /// Those that the wait and turnstile infos refer to.
    std::vector<PortLabel> port_labels{};
    /// In its memory; of the kernel task: the kernel and its extensions.
    std::vector<LoadInfo> images{};
    /// Of the kernel task: where the code of the kernel and its extensions is.
    std::vector<LoadInfo> text_exec_images{};
    /// Its own shared cache, if that is not the system's.
    std::optional<LoadInfo> shared_cache{};
    std::optional<kcdata::stackshot_latency_task> latency{};
};

struct Timebase {
    std::uint32_t numer = 1;
    std::uint32_t denom = 1;
};

struct MemoryStatistics {
    std::uint32_t free_pages = 0;
    std::uint32_t active_pages = 0;
    std::uint32_t wired_pages = 0;
};

struct Snapshot {
    /// Threads and tasks that have not run since another capture are told of only in part.
    bool delta = false;
    /// Of a delta: the absolute time since when they have not.
    std::optional<std::uint64_t> delta_since{};
    std::optional<std::string> os_version{};
    std::optional<std::string> os_build_version{};
    std::optional<std::string> boot_args{};
    std::optional<std::uint32_t> page_size{};
    std::optional<Timebase> timebase{};
    std::optional<std::uint64_t> absolute_time{};
    std::optional<std::uint64_t> usecs_since_epoch{};
    std::optional<MemoryStatistics> memory{};
    std::optional<LoadInfo> kernel{};
    /// The system's shared cache where it is mapped, and the images in it.
    std::optional<LoadInfo> shared_cache{};
    std::vector<LoadInfo> shared_cache_images{};
    std::optional<std::uint64_t> absent_cpus{};  ///< bit n: CPU n did not stop
    /// CPUs that took part in the collection.
    std::vector<std::int32_t> collecting_cpus{};
    /// One for each of them. What the record of an older kernel lacks is 0.
    std::vector<kcdata::stackshot_latency_cpu> cpu_latencies{};
    /// Behind total_terminated_task_iteration_latency_mt all is 0 before latency_version 2.
    std::optional<kcdata::stackshot_latency_collection_v2> latency{};
    std::optional<std::uint64_t> tasks_count{};
    std::optional<std::uint64_t> threads_count{};
    std::optional<std::uint64_t> duration{};
    std::optional<std::uint64_t> duration_outer{};
    std::optional<std::uint64_t> duration_prior{};
    std::optional<std::uint64_t> tries{};
    std::optional<std::uint64_t> in_flags{};
    std::vector<TaskSnapshot> tasks{};
    /// What is wrong with the buffer: "offset 0x...: ..."; what it held up to there is above.
    std::vector<std::string> problems{};

    /// Absolute time in nanoseconds, if the capture tells the timebase.
    std::optional<double> nanoseconds(std::optional<std::uint64_t> time) const;
};

Snapshot read_snapshot(std::span<const std::byte> buffer);

}  // namespace tools
