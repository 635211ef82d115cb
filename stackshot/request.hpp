#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"
#include "kcdata/stackshot_flags.hpp"

namespace stackshot {

/// Flags that change what kind of buffer a capture gives; a request with one of them is refused, as
/// none of these is built.
inline constexpr std::uint64_t refused_flags =
    kcdata::STACKSHOT_GET_BOOT_PROFILE | kcdata::STACKSHOT_DO_COMPRESS |
    kcdata::STACKSHOT_SAVE_IN_KERNEL_BUFFER | kcdata::STACKSHOT_RETRIEVE_EXISTING_BUFFER |
    kcdata::STACKSHOT_COLLECT_DELTA_SNAPSHOT | kcdata::STACKSHOT_FROM_PANIC |
    kcdata::STACKSHOT_PAGE_TABLES;
/// Flags that ask for records this system has nothing for. Like XNU's for features that are not
/// built, they are cleared before the capture: stackshot_in_flags does not show them.
inline constexpr std::uint64_t cleared_flags =
    kcdata::STACKSHOT_SAVE_KEXT_LOADINFO | kcdata::STACKSHOT_INSTRS_CYCLES;
/// The same, but stackshot_in_flags shows them and stackshot_out_flags does not.
inline constexpr std::uint64_t unmet_flags =
    kcdata::STACKSHOT_GET_DQ | kcdata::STACKSHOT_SAVE_IMP_DONATION_PIDS |
    kcdata::STACKSHOT_ENABLE_BT_FAULTING | kcdata::STACKSHOT_COLLECT_SHAREDCACHE_LAYOUT |
    kcdata::STACKSHOT_ENABLE_UUID_FAULTING | kcdata::STACKSHOT_THREAD_WAITINFO |
    kcdata::STACKSHOT_THREAD_GROUP | kcdata::STACKSHOT_SAVE_JETSAM_COALITIONS |
    kcdata::STACKSHOT_ASID | kcdata::STACKSHOT_SAVE_DYLD_COMPACTINFO | kcdata::STACKSHOT_EXCLAVES;

/// What a capture is asked for.
struct Request {
    static constexpr std::int32_t all_pids = -1;

    /// Take only the task with this pid; all_pids: every task.
    std::int32_t pid = all_pids;
    /// STACKSHOT_* of kcdata/stackshot_flags.hpp.
    std::uint64_t flags = kcdata::STACKSHOT_KCDATA_FORMAT;
    /// Bytes the buffer should have at least; ignored above the maximum. 0: no opinion.
    std::uint32_t size_hint = 0;

    bool has(std::uint64_t flag) const { return (flags & flag) != 0; }
    bool wants(std::int32_t task_pid) const { return pid == all_pids || pid == task_pid; }
    /// Whether the capture is of one task and ends with it, which one CPU does best alone.
    bool process_scoped() const {
        return pid != all_pids && !has(kcdata::STACKSHOT_INCLUDE_DRIVER_THREADS_IN_KERNEL);
    }
};

/// Checks a stackshot_config as it came from a caller, in the order of XNU's checks, and takes the
/// request out of it. Any context; touches nothing but its arguments.
///
/// KERN_NOT_SUPPORTED: version other than 1, no STACKSHOT_KCDATA_FORMAT, a combination that is not
/// supported, or one of refused_flags. KERN_INVALID_ARGUMENT: wrong size, flags that exclude each
/// other, or a delta timestamp without STACKSHOT_COLLECT_DELTA_SNAPSHOT.
kcdata::Result<Request> validate_request(std::uint32_t version, std::span<const std::byte> config);

}  // namespace stackshot
