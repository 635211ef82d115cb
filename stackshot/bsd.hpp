#pragma once

#include <cstddef>
#include <cstdint>

#include "kcdata/result.hpp"
#include "stackshot/credential.hpp"
#include "stackshot/publication.hpp"
#include "stackshot/subsystem.hpp"

namespace stackshot {

/// XNU's errno values as its BSD calls return them (bsd/sys/errno.h). The prefix keeps them apart
/// from the macros of hosts, where some have other numbers.
enum class [[nodiscard]] bsd_errno : std::int32_t{
    BSD_SUCCESS = 0, BSD_EPERM = 1,   BSD_ENOENT = 2,   BSD_EINTR = 4,
    BSD_ENOMEM = 12, BSD_EFAULT = 14, BSD_EBUSY = 16,   BSD_EEXIST = 17,
    BSD_EINVAL = 22, BSD_ENOSPC = 28, BSD_ENOTSUP = 45, BSD_ETIMEDOUT = 60,
};
using enum bsd_errno;

/// The name of `error` as in errno.h, or "unknown errno".
const char* bsd_errno_name(bsd_errno error);

/// XNU's stackshot_kern_return_to_bsd_error.
bsd_errno bsd_error(kcdata::kern_return error);

/// A task that calls.
struct UserCaller {
    Credential credential{};
    CallerMap& map;
};

/// The system call stack_snapshot_with_config, on behalf of a task: checks who it is, reads the
/// configuration of `config_size` bytes at `config_address` of its map, and makes the request. What
/// stands in the way is found in this order:
///
/// - EPERM: not the superuser, or not entitled where AdmissionPolicy refuses that.
/// - EINVAL: no address. ENOTSUP: a version that is not known. EINVAL: another size than the
///   version's. EFAULT: the configuration cannot be read.
/// - otherwise bsd_error() of Subsystem::snapshot().
///
/// Whoever may call without being entitled should be reported: see reportable(). Thread context.
bsd_errno stack_snapshot_with_config(Subsystem& subsystem, const UserCaller& caller,
                                     std::uint32_t version, std::uint64_t config_address,
                                     std::size_t config_size);

/// Whether a call of stack_snapshot_with_config() by `credential` is to be reported: a superuser
/// that is not entitled, admitted or not.
bool reportable(const Credential& credential);

/// XNU's sysctl of the subsystem's statistics. EPERM: neither the superuser nor entitled, or an
/// attempt to write.
bsd_errno stackshot_stats(Subsystem& subsystem, const Credential& credential, bool write,
                          SubsystemStatistics& statistics);

}  // namespace stackshot
