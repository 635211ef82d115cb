#include "stackshot/request.hpp"

#include <cstring>

namespace stackshot {

using namespace kcdata;

namespace {

kern_return check_flags(Origin origin, const AdmissionPolicy& policy, const Request& request) {
    constexpr std::uint64_t kernel_only =
        STACKSHOT_TRYLOCK | STACKSHOT_SAVE_IN_KERNEL_BUFFER | STACKSHOT_FROM_PANIC;
    const bool from_user = origin == Origin::user;
    if (from_user && request.has(kernel_only))
        return KERN_NO_ACCESS;
    if (from_user && !policy.development && request.has(STACKSHOT_DO_COMPRESS))
        return KERN_NO_ACCESS;
    if (!from_user && !request.has(STACKSHOT_SAVE_IN_KERNEL_BUFFER))
        return KERN_NOT_SUPPORTED;
    if (!request.has(STACKSHOT_KCDATA_FORMAT | STACKSHOT_RETRIEVE_EXISTING_BUFFER))
        return KERN_NOT_SUPPORTED;
    if (request.has(STACKSHOT_DO_COMPRESS) &&
        request.has(STACKSHOT_COLLECT_DELTA_SNAPSHOT | STACKSHOT_PAGE_TABLES))
        return KERN_NOT_SUPPORTED;
    if (!request.has(STACKSHOT_SAVE_IN_KERNEL_BUFFER) &&
        (request.out_buffer_address == 0 || request.out_size_address == 0))
        return KERN_INVALID_ARGUMENT;
    if (request.delta_timestamp != 0 && !request.is_delta())
        return KERN_INVALID_ARGUMENT;
    if (request.has(STACKSHOT_EXCLAVES) && request.has(STACKSHOT_SKIP_EXCLAVES))
        return KERN_INVALID_ARGUMENT;
    return KERN_SUCCESS;
}

}  // namespace

Result<Request> validate_request(Origin origin, const AdmissionPolicy& policy,
                                 std::uint32_t version, std::span<const std::byte> config) {
    if (config.data() == nullptr)
        return KERN_INVALID_ARGUMENT;
    if (policy.feature_override)
        return KERN_NOT_SUPPORTED;
    if (version != STACKSHOT_CONFIG_TYPE)
        return KERN_NOT_SUPPORTED;
    stackshot_config c{};
    if (config.size() != sizeof(c))
        return KERN_INVALID_ARGUMENT;
    std::memcpy(&c, config.data(), sizeof(c));

    Request request{c.sc_pid, c.sc_flags, c.sc_size};
    request.delta_timestamp = c.sc_delta_timestamp;
    request.out_buffer_address = c.sc_out_buffer_addr;
    request.out_size_address = c.sc_out_size_addr;
    if (request.has(STACKSHOT_PAGE_TABLES))
        request.pagetable_mask = static_cast<std::uint32_t>(c.sc_pagetable_mask);
    if (const kern_return error = check_flags(origin, policy, request); error != KERN_SUCCESS)
        return error;
    return request;
}

}  // namespace stackshot
