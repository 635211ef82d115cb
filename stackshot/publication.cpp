#include "stackshot/publication.hpp"

namespace stackshot {

using namespace kcdata;

kern_return Publication::publish(std::span<std::byte> pages, std::size_t size) {
    if (map_ == nullptr)
        return KERN_INVALID_ADDRESS;
    const auto address = map_->map(pages);
    if (!address.ok())
        return address.error();
    if (const kern_return error = copy_out(address.value(), static_cast<std::uint32_t>(size));
        error != KERN_SUCCESS) {
        map_->unmap(address.value());
        return error;
    }
    map_->adopt(address.value());
    done_ = true;
    return KERN_SUCCESS;
}

kern_return Publication::copy_out(std::uint64_t address, std::uint32_t size) {
    if (const kern_return error =
            map_->copy_out(std::as_bytes(std::span(&address, 1)), out_buffer_address_);
        error != KERN_SUCCESS)
        return error;
    return map_->copy_out(std::as_bytes(std::span(&size, 1)), out_size_address_);
}

}  // namespace stackshot
