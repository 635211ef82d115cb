#include "stackshot/bsd.hpp"

namespace stackshot {

using namespace kcdata;

const char* bsd_errno_name(bsd_errno error) {
    switch (error) {
        case BSD_SUCCESS:
            return "success";
        case BSD_EPERM:
            return "EPERM";
        case BSD_ENOENT:
            return "ENOENT";
        case BSD_EINTR:
            return "EINTR";
        case BSD_ENOMEM:
            return "ENOMEM";
        case BSD_EFAULT:
            return "EFAULT";
        case BSD_EBUSY:
            return "EBUSY";
        case BSD_EEXIST:
            return "EEXIST";
        case BSD_EINVAL:
            return "EINVAL";
        case BSD_ENOSPC:
            return "ENOSPC";
        case BSD_ENOTSUP:
            return "ENOTSUP";
        case BSD_ETIMEDOUT:
            return "ETIMEDOUT";
    }
    return "unknown errno";
}

bsd_errno bsd_error(kern_return error) {
    switch (error) {
        case KERN_SUCCESS:
            return BSD_SUCCESS;
        case KERN_RESOURCE_SHORTAGE:
            return BSD_ENOMEM;
        case KERN_INSUFFICIENT_BUFFER_SIZE:
        case KERN_NO_SPACE:
            return BSD_ENOSPC;
        case KERN_NO_ACCESS:
            return BSD_EPERM;
        case KERN_MEMORY_PRESENT:
            return BSD_EEXIST;
        case KERN_NOT_SUPPORTED:
            return BSD_ENOTSUP;
        case KERN_NOT_IN_SET:
            return BSD_ENOENT;
        case KERN_ABORTED:
            return BSD_EINTR;
        case KERN_FAILURE:
            return BSD_EBUSY;
        case KERN_OPERATION_TIMED_OUT:
            return BSD_ETIMEDOUT;
        default:
            return BSD_EINVAL;
    }
}

bool reportable(const Credential& credential) {
    return credential.superuser() && !credential.entitled(entitlement_stackshot);
}

bsd_errno stack_snapshot_with_config(Subsystem& subsystem, const UserCaller& caller,
                                     std::uint32_t version, std::uint64_t config_address,
                                     std::size_t config_size) {
    const Credential& credential = caller.credential;
    if (!credential.superuser())
        return BSD_EPERM;
    if (subsystem.policy().entitlement == EntitlementPolicy::refuse &&
        !credential.entitled(entitlement_stackshot))
        return BSD_EPERM;
    if (config_address == 0)
        return BSD_EINVAL;
    if (version != STACKSHOT_CONFIG_TYPE)
        return BSD_ENOTSUP;
    stackshot_config config;
    if (config_size != sizeof(config))
        return BSD_EINVAL;
    const auto bytes = std::as_writable_bytes(std::span(&config, 1));
    if (caller.map.copy_in(config_address, bytes) != KERN_SUCCESS)
        return BSD_EFAULT;
    return bsd_error(subsystem.snapshot(&caller.map, version, bytes));
}

bsd_errno stackshot_stats(Subsystem& subsystem, const Credential& credential, bool write,
                          SubsystemStatistics& statistics) {
    if (write || !(credential.superuser() || credential.entitled(entitlement_stackshot_stats)))
        return BSD_EPERM;
    statistics = subsystem.statistics();
    return BSD_SUCCESS;
}

}  // namespace stackshot
