#include "kcdata/resynchronization.hpp"

#include "kcdata/payload.hpp"
#include "kcdata/schema.hpp"

namespace kcdata {

namespace {

bool makes_sense(const ItemHeader& header) {
    constexpr std::uint64_t plain_flags =
        KCDATA_FLAGS_STRUCT_PADDING_MASK | KCDATA_FLAGS_STRUCT_HAS_PADDING;
    if (is_array(header.type))
        return find_type(static_cast<std::uint32_t>(header.flags >> 32)) != nullptr &&
               array_layout(header).valid;
    switch (header.type) {
        case KCDATA_TYPE_BUFFER_END:
            return header.size == 0 && header.flags == 0;
        case KCDATA_TYPE_CONTAINER_BEGIN:
            return header.size == alignment;
        case KCDATA_TYPE_CONTAINER_END:
            return header.size == 0;
        default:
            break;
    }
    const Type* const type = find_type(header.type);
    if (type == nullptr || type->shape == Shape::container || (header.flags & ~plain_flags) != 0 ||
        header.size % alignment != 0)
        return false;
    if (type->shape == Shape::buffer)
        return header.size == 0;
    return header.size >= (type->shape == Shape::described ? description_size : 1);
}

}  // namespace

bool items_follow(std::span<const std::byte> buffer, std::size_t offset, unsigned count) {
    for (unsigned found = 0; found < count; ++found) {
        if (found != 0 && offset == buffer.size())
            return true;
        if (offset > buffer.size() || buffer.size() - offset < sizeof(ItemHeader))
            return false;
        const ItemHeader header = load_header(buffer.data() + offset);
        if (!makes_sense(header))
            return false;
        if (header.size > buffer.size() - offset - sizeof(header))
            return found != 0;
        if (header.type == KCDATA_TYPE_BUFFER_END)
            return true;
        offset += sizeof(header) + header.size;
    }
    return true;
}

std::size_t find_items(std::span<const std::byte> buffer, std::size_t offset) {
    constexpr unsigned enough = 4;
    for (offset = (offset / alignment + 1) * alignment; offset < buffer.size(); offset += alignment)
        if (items_follow(buffer, offset, enough))
            return offset;
    return buffer.size();
}

}  // namespace kcdata
