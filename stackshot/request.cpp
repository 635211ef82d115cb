#include "stackshot/request.hpp"

#include <cstring>

namespace stackshot {

using namespace kcdata;

Result<Request> validate_request(std::uint32_t version, std::span<const std::byte> config) {
    if (version != STACKSHOT_CONFIG_TYPE)
        return KERN_NOT_SUPPORTED;
    stackshot_config c{};
    if (config.size() != sizeof(c))
        return KERN_INVALID_ARGUMENT;
    std::memcpy(&c, config.data(), sizeof(c));
    const Request request{c.sc_pid, c.sc_flags, c.sc_size};

    if (!request.has(STACKSHOT_KCDATA_FORMAT | STACKSHOT_RETRIEVE_EXISTING_BUFFER))
        return KERN_NOT_SUPPORTED;
    if (request.has(STACKSHOT_DO_COMPRESS) &&
        request.has(STACKSHOT_COLLECT_DELTA_SNAPSHOT | STACKSHOT_PAGE_TABLES))
        return KERN_NOT_SUPPORTED;
    if (c.sc_delta_timestamp != 0 && !request.has(STACKSHOT_COLLECT_DELTA_SNAPSHOT))
        return KERN_INVALID_ARGUMENT;
    if (request.has(STACKSHOT_EXCLAVES) && request.has(STACKSHOT_SKIP_EXCLAVES))
        return KERN_INVALID_ARGUMENT;
    if (request.has(refused_flags))
        return KERN_NOT_SUPPORTED;
    return request;
}

}  // namespace stackshot
