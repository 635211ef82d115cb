#include "kcdata/writer.hpp"

#include <cstdint>
#include <limits>

namespace kcdata {

namespace {

constexpr std::uint64_t padding_flags(std::size_t padding) {
    return KCDATA_FLAGS_STRUCT_HAS_PADDING | padding;
}

void put_header(std::span<std::byte> to, const ItemHeader& header) {
    std::memcpy(to.data(), &header, sizeof(header));
}

}  // namespace

bool Writer::extend(std::size_t needed) {
    if (extender_ == nullptr)
        return false;
    const std::span<std::byte> chunk = extender_->next_chunk(used_, needed);
    if (chunk.size() < needed)
        return false;
    buffer_ = chunk;
    used_ = 0;
    return true;
}

Result<std::span<std::byte>> Writer::claim_plain(std::uint32_t type, std::size_t size) {
    if (size > max_payload)
        return KERN_INVALID_ARGUMENT;
    const std::size_t padding = padding_for(size);
    std::byte* const payload = claim_item(type, size, padding, padding_flags(padding));
    if (payload == nullptr)
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    return std::span(payload, size);
}

kern_return Writer::begin(std::uint32_t magic) {
    auto item = claim_plain(magic, 0);
    return item.ok() ? KERN_SUCCESS : item.error();
}

kern_return Writer::end() {
    if (buffer_.size() < used_ + sizeof(ItemHeader))
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    put_header(buffer_.subspan(used_), {KCDATA_TYPE_BUFFER_END, 0, 0});
    used_ += sizeof(ItemHeader);
    // Closed: nothing fits any more, and nothing is asked for.
    buffer_ = buffer_.first(used_);
    extender_ = nullptr;
    last_is_container_begin_ = false;
    return KERN_SUCCESS;
}

Result<std::span<std::byte>> Writer::reserve(std::uint32_t type, std::size_t size) {
    auto payload = claim_plain(type, size);
    if (payload.ok() && size != 0)
        std::memset(payload.value().data(), 0, size);
    return payload;
}

Result<std::span<std::byte>> Writer::reserve_array(std::uint32_t element_type,
                                                   std::size_t element_size, std::size_t count) {
    std::size_t size = 0;
    if (__builtin_mul_overflow(element_size, count, &size) || size > max_payload ||
        count > std::numeric_limits<std::uint32_t>::max() || (element_size == 0 && count != 0))
        return KERN_INVALID_ARGUMENT;
    const std::size_t padding = padding_for(size);
    std::byte* const payload =
        claim_item(KCDATA_TYPE_ARRAY_PAD0 + static_cast<std::uint32_t>(padding), size, padding,
                   std::uint64_t{element_type} << 32 | count);
    if (payload == nullptr)
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    std::memset(payload, 0, size);
    return std::span(payload, size);
}

kern_return Writer::append(std::uint32_t type, std::span<const std::byte> payload) {
    auto item = claim_plain(type, payload.size());
    if (!item.ok())
        return item.error();
    if (!payload.empty())
        std::memcpy(item.value().data(), payload.data(), payload.size());
    return KERN_SUCCESS;
}

kern_return Writer::undo_container_begin() {
    if (!last_is_container_begin_)
        return KERN_INVALID_ARGUMENT;
    used_ -= sizeof(ItemHeader) + alignment;
    last_is_container_begin_ = false;
    return KERN_SUCCESS;
}

kern_return Writer::append_described(std::uint32_t type, const char* description,
                                     std::span<const std::byte> value) {
    const std::size_t length =
        description == nullptr ? description_size : strnlen(description, description_size);
    if (length == description_size)
        return KERN_INVALID_ARGUMENT;
    auto payload = reserve(type, description_size + value.size());
    if (!payload.ok())
        return payload.error();
    std::memcpy(payload.value().data(), description, length);
    std::memcpy(payload.value().data() + description_size, value.data(), value.size());
    return KERN_SUCCESS;
}

kern_return Writer::append_uint32_with_description(const char* description, std::uint32_t value) {
    return append_described(KCDATA_TYPE_UINT32_DESC, description,
                            std::as_bytes(std::span(&value, 1)));
}

kern_return Writer::append_uint64_with_description(const char* description, std::uint64_t value) {
    return append_described(KCDATA_TYPE_UINT64_DESC, description,
                            std::as_bytes(std::span(&value, 1)));
}

Result<std::span<std::byte>> Writer::allocate_end(std::size_t size) {
    if (extender_ != nullptr)
        return KERN_INVALID_ARGUMENT;
    const std::size_t quarter = buffer_.size() / 4;
    if (size >= quarter || buffer_.size() < used_ + sizeof(ItemHeader))
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    // Down from an end that may not be aligned itself.
    const std::byte* const end = buffer_.data() + buffer_.size();
    size = (size + 7) / 8 * 8 + reinterpret_cast<std::uintptr_t>(end) % 8;
    if (size >= quarter || size > buffer_.size() - used_ - sizeof(ItemHeader))
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    const auto taken = buffer_.last(size);
    buffer_ = buffer_.first(buffer_.size() - size);
    return taken;
}

kern_return Writer::append_items(std::span<const std::byte> items) {
    if (items.size() % alignment != 0)
        return KERN_INVALID_ARGUMENT;
    if (items.empty())
        return KERN_SUCCESS;
    std::byte* const room = claim(items.size());
    if (room == nullptr)
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    std::memcpy(room, items.data(), items.size());
    return KERN_SUCCESS;
}

}  // namespace kcdata
