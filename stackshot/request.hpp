#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/format.hpp"
#include "kcdata/result.hpp"
#include "kcdata/stackshot_flags.hpp"

namespace stackshot {

/// Flags that ask for records this system has nothing for. Like XNU's for features that are not
/// built, they are cleared before the capture: stackshot_in_flags does not show them.
inline constexpr std::uint64_t cleared_flags = kcdata::STACKSHOT_SAVE_KEXT_LOADINFO;
/// The same, but stackshot_in_flags shows them and stackshot_out_flags does not.
inline constexpr std::uint64_t unmet_flags =
    kcdata::STACKSHOT_ENABLE_BT_FAULTING | kcdata::STACKSHOT_COLLECT_SHAREDCACHE_LAYOUT |
    kcdata::STACKSHOT_ENABLE_UUID_FAULTING | kcdata::STACKSHOT_ASID |
    kcdata::STACKSHOT_PAGE_TABLES | kcdata::STACKSHOT_SAVE_DYLD_COMPACTINFO |
    kcdata::STACKSHOT_EXCLAVES;

/// What a capture is asked for.
struct Request {
    static constexpr std::int32_t all_pids = -1;

    /// Take only the task with this pid; all_pids: every task.
    std::int32_t pid = all_pids;
    /// STACKSHOT_* of kcdata/stackshot_flags.hpp.
    std::uint64_t flags = kcdata::STACKSHOT_KCDATA_FORMAT;
    /// Bytes the buffer should have at least; ignored above the maximum. 0: no opinion.
    std::uint32_t size_hint = 0;
    /// With STACKSHOT_COLLECT_DELTA_SNAPSHOT: absolute time since when changes are wanted, that of
    /// the KCDATA_TYPE_MACH_ABSOLUTE_TIME of the capture before.
    std::uint64_t delta_timestamp = 0;
    /// With STACKSHOT_PAGE_TABLES: levels to dump; 0: all.
    std::uint32_t pagetable_mask = 0;
    /// Where in the caller's map address and length of the result are wanted; 0: nowhere.
    std::uint64_t out_buffer_address = 0;
    std::uint64_t out_size_address = 0;

    bool has(std::uint64_t flag) const { return (flags & flag) != 0; }
    bool wants(std::int32_t task_pid) const { return pid == all_pids || pid == task_pid; }
    bool wants_latencies() const { return !has(kcdata::STACKSHOT_DISABLE_LATENCY_INFO); }
    /// A delta has none.
    bool wants_io_statistics() const {
        return !has(kcdata::STACKSHOT_NO_IO_STATS | kcdata::STACKSHOT_COLLECT_DELTA_SNAPSHOT);
    }
    bool is_delta() const { return has(kcdata::STACKSHOT_COLLECT_DELTA_SNAPSHOT); }
    /// Whether the capture is of one task and ends with it, which one CPU does best alone.
    bool process_scoped() const {
        return pid != all_pids && !has(kcdata::STACKSHOT_INCLUDE_DRIVER_THREADS_IN_KERNEL);
    }
    /// The item a capture begins with.
    std::uint32_t begin_magic() const {
        return is_delta() ? kcdata::KCDATA_BUFFER_BEGIN_DELTA_STACKSHOT
                          : kcdata::KCDATA_BUFFER_BEGIN_STACKSHOT;
    }
    /// What stackshot_in_flags says: the flags asked for.
    std::uint64_t in_flags() const { return flags & ~cleared_flags; }
    /// What stackshot_out_flags says: those of them that were met.
    std::uint64_t out_flags() const { return flags & ~(cleared_flags | unmet_flags); }
};

/// Who makes a request: a task through the system call, or the kernel itself.
enum class Origin : std::uint8_t { user, kernel };

/// What becomes of a caller without entitlement_stackshot.
enum class EntitlementPolicy : std::uint8_t { report, refuse };

/// What boot arguments change in the admission of requests.
struct AdmissionPolicy {
    EntitlementPolicy entitlement = EntitlementPolicy::report;
    /// Whether this is, in XNU's terms, a development kernel; a release kernel refuses tasks
    /// STACKSHOT_DO_COMPRESS.
    bool development = true;
    /// XNU's KF_STACKSHOT_OVRD: no stackshots are to be taken at all.
    bool feature_override = false;
};

/// Checks a stackshot_config, in the order of XNU's kern_stack_snapshot_internal, and takes the
/// request out of it. Any context; touches nothing but its arguments, so that nothing is waited for
/// on behalf of a request that is refused.
///
/// - KERN_INVALID_ARGUMENT: no config (data() is null), not exactly a stackshot_config long, an
///   output address missing, a delta timestamp without STACKSHOT_COLLECT_DELTA_SNAPSHOT, or
///   STACKSHOT_EXCLAVES with STACKSHOT_SKIP_EXCLAVES.
/// - KERN_NOT_SUPPORTED: feature override, version other than 1, a kernel request that does not
///   save its result, neither STACKSHOT_KCDATA_FORMAT nor STACKSHOT_RETRIEVE_EXISTING_BUFFER, or
///   STACKSHOT_DO_COMPRESS with what cannot be compressed.
/// - KERN_NO_ACCESS: a flag that is only for the kernel.
kcdata::Result<Request> validate_request(Origin origin, const AdmissionPolicy& policy,
                                         std::uint32_t version, std::span<const std::byte> config);

}  // namespace stackshot
