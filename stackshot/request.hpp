#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"

namespace stackshot {

/// What a capture is asked for.
struct Request {
    /// Take only the task with this pid; all_pids: every task.
    std::int32_t pid = -1;
    /// STACKSHOT_* of kcdata/stackshot_flags.hpp.
    std::uint64_t flags = 0;
    /// Bytes the buffer should have at least; ignored above the maximum. 0: no opinion.
    std::uint32_t size_hint = 0;

    static constexpr std::int32_t all_pids = -1;

    bool has(std::uint64_t flag) const { return (flags & flag) != 0; }
    /// Whether the capture is of one task, which is always taken single-threaded.
    bool process_scoped() const;
};

/// Checks a stackshot_config as it came from a caller, in the order of XNU's checks, and takes the
/// request out of it. Any context; touches nothing but its arguments.
///
/// KERN_NOT_SUPPORTED: version other than 1, no STACKSHOT_KCDATA_FORMAT, contradicting or unbuilt
/// flags. KERN_INVALID_ARGUMENT: wrong size, flags that exclude each other, or a delta timestamp
/// without STACKSHOT_COLLECT_DELTA_SNAPSHOT.
kcdata::Result<Request> validate_request(std::uint32_t version, std::span<const std::byte> config);

}  // namespace stackshot
