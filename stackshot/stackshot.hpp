#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"
#include "stackshot/request.hpp"
#include "stackshot/system.hpp"

namespace stackshot {

/// Where the time of a capture went and what it holds. Times in absolute time units, of the attempt
/// that succeeded unless said otherwise.
struct Statistics {
    std::uint64_t prepare_time = 0;    ///< estimate and allocation
    std::uint64_t trap_time = 0;       ///< from the call of System::trap to its return
    std::uint64_t interrupts_off = 0;  ///< as System::trap measured it
    std::uint64_t assemble_time = 0;   ///< from the end of the trap to the finished buffer
    std::uint64_t prior_time = 0;      ///< trap time of the attempts that were too small
    std::uint32_t tries = 0;           ///< 1: the first estimate held
    std::size_t buffer_size = 0;       ///< bytes the collection had to write into
    std::size_t estimated_size = 0;    ///< bytes the first attempt would have had without a limit
    std::size_t peak_memory = 0;       ///< most bytes allocated at a time, over all attempts
    std::uint64_t tasks = 0, threads = 0, frames = 0;
    CpuMask workers = 0;  ///< CPUs that took part in the collection
    CpuMask absent = 0;   ///< CPUs that did not answer the stop
};

/// What the stackshot subsystem has done since boot. Times are of the traps alone, failed ones
/// included, in absolute time.
struct SubsystemStatistics {
    std::uint64_t last_start = 0;
    std::uint64_t last_end = 0;  ///< 0 while a trap is under way
    std::uint64_t count = 0;
    std::uint64_t duration = 0;  ///< of all together
    /// Traps that had interrupts off for longer than Tunables::interrupts_off_limit.
    std::uint64_t overdue = 0;
};

/// A finished capture: `size` bytes of kcdata at the start of `buffer`, in which zeroes follow. The
/// receiver owns `buffer` (whole pages, no more than needed) and gives it back with System::free.
struct Stackshot {
    std::span<std::byte> buffer{};
    std::size_t size = 0;
    Statistics statistics{};

    std::span<const std::byte> data() const { return buffer.first(size); }
};

/// Captures the system: sizes and allocates, stops the world, collects on all CPUs (or on one, see
/// Request::process_scoped), resumes, and assembles one kcdata buffer. An attempt whose buffer was
/// too small is thrown away and started again with twice the size. Thread context, interrupts on,
/// System::lock held; blocks. `totals`, if there is one, is kept up to date.
///
/// KERN_RESOURCE_SHORTAGE: no memory, or the largest allowed buffer was too small. KERN_FAILURE:
/// the system's lists are corrupt. After an error nothing is left allocated.
kcdata::Result<Stackshot> take_stackshot(System& system, const Request& request,
                                         SubsystemStatistics* totals = nullptr);

/// One attempt with `size` bytes to collect into, max_tracebuf_size() at most.
/// KERN_INSUFFICIENT_BUFFER_SIZE: they are too few. Otherwise as take_stackshot().
kcdata::Result<Stackshot> try_stackshot(System& system, const Request& request, std::size_t size,
                                        SubsystemStatistics* totals = nullptr);

}  // namespace stackshot
