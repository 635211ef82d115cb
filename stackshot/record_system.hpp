#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"
#include "kcdata/writer.hpp"
#include "stackshot/latency.hpp"
#include "stackshot/request.hpp"
#include "stackshot/system.hpp"

namespace stackshot {

/// What the records in front of the tasks say besides SystemFacts.
struct PreTaskFacts {
    std::uint32_t size_estimate = 0;  ///< bytes; 0: there was none, not recorded
    std::uint32_t size_estimate_adj = 0;
    std::uint64_t absolute_time = 0;
    std::uint64_t usecs_since_epoch = 0;
};
/// Bytes record_pre_task appends at most, but for the thread groups.
inline constexpr std::size_t record_pre_task_room = 2048;
/// Appends the system-wide records in front of the tasks. Inside the trap.
kcdata::kern_return record_pre_task(kcdata::Writer& writer, System& system, Quiesced& quiesced,
                                    const Request& request, const PreTaskFacts& facts);

/// Appends what stands behind the tasks and tells of the system: its coalitions, if the request
/// wants them. Inside the trap.
kcdata::kern_return record_coalitions(kcdata::Writer& writer, System& system, Quiesced& quiesced);

/// Appends how many tasks and threads there are in the capture. Any context.
kcdata::kern_return record_counts(kcdata::Writer& writer, const Counts& counts);
/// What the last records of a capture say.
struct PostTaskFacts {
    CollectionLatency latency{};
    /// One for each CPU that took part.
    std::span<const CpuLatency> latencies{};
    std::uint64_t duration = 0;        ///< absolute time of the collection, barrier included
    std::uint64_t prior_duration = 0;  ///< absolute time of attempts that were too small
    std::uint32_t tries = 1;
};
/// Bytes record_counts and record_post_task append at most for so many CPUs.
std::size_t record_post_task_room(CpuIndex cpus);
/// Appends the last records: what the capture itself took, and its flags. Any context. Returns
/// where to store the outer duration (a u64 in absolute time, not aligned), once it is known.
kcdata::Result<std::span<std::byte>> record_post_task(kcdata::Writer& writer,
                                                      const Request& request,
                                                      const PostTaskFacts& facts);

}  // namespace stackshot
