#include "kcdata/reader.hpp"

#include <cstring>

#include "kcdata/types.hpp"

namespace kcdata {

namespace {

constexpr bool is_array(std::uint32_t type) {
    return type == KCDATA_TYPE_ARRAY ||
           (type >= KCDATA_TYPE_ARRAY_PAD0 && type <= KCDATA_TYPE_ARRAY_PADf);
}

/// Element sizes of KCDATA_TYPE_ARRAY, whose items do not tell; 0: no such array exists. The list
/// is closed: today's arrays carry their padding in the type.
constexpr std::size_t legacy_element_size(std::uint32_t element_type) {
    switch (element_type) {
        case KCDATA_TYPE_LIBRARY_LOADINFO:
            return 20;
        case KCDATA_TYPE_LIBRARY_LOADINFO64:
            return 24;
        case STACKSHOT_KCTYPE_KERN_STACKFRAME:
        case STACKSHOT_KCTYPE_USER_STACKFRAME:
            return 8;
        case STACKSHOT_KCTYPE_KERN_STACKFRAME64:
        case STACKSHOT_KCTYPE_USER_STACKFRAME64:
            return 16;
        case STACKSHOT_KCTYPE_DONATING_PIDS:
            return 4;
        case STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT:
            return 48;
        case TASK_CRASHINFO_CRASHED_THREADID:
            return 8;
        default:
            return 0;
    }
}

/// Payload bytes of an item that is no array and no container: two record types were once written
/// rounded up without saying so; all others subtract the padding their flags name.
constexpr std::size_t plain_payload_size(const ItemHeader& header) {
    constexpr std::uint64_t padding_bits =
        KCDATA_FLAGS_STRUCT_PADDING_MASK | KCDATA_FLAGS_STRUCT_HAS_PADDING;
    if ((header.flags & padding_bits) == 0) {
        if (header.type == STACKSHOT_KCTYPE_THREAD_SNAPSHOT && header.size == 112)
            return 104;
        if (header.type == STACKSHOT_KCTYPE_SHAREDCACHE_LOADINFO && header.size == 32)
            return 24;
    }
    const std::size_t padding =
        static_cast<std::size_t>(header.flags & KCDATA_FLAGS_STRUCT_PADDING_MASK);
    return padding < header.size ? header.size - padding : 0;
}

/// Fills in what an array holds; false if its numbers contradict each other.
bool fill_array(Item& item) {
    const std::size_t size = item.payload.size();
    item.kind = ItemKind::array;
    item.element_type = static_cast<std::uint32_t>(item.flags >> 32);
    item.element_count = static_cast<std::uint32_t>(item.flags);

    if (item.element_count == 0) {
        item.payload = {};
        return size == 0;
    }
    if (item.type == KCDATA_TYPE_ARRAY) {
        item.element_size = legacy_element_size(item.element_type);
        if (item.element_size == 0 || item.element_count > size / item.element_size ||
            size % item.element_count >= alignment)
            return false;
    } else {
        const std::size_t padding = item.type - KCDATA_TYPE_ARRAY_PAD0;
        if (padding > size || item.element_count > size - padding ||
            (size - padding) % item.element_count != 0)
            return false;
        item.element_size = (size - padding) / item.element_count;
    }
    item.payload = item.payload.first(item.element_count * item.element_size);
    return true;
}

}  // namespace

const char* read_error_text(ReadError error) {
    switch (error) {
        case ReadError::none:
            return "no error";
        case ReadError::bad_magic:
            return "no kcdata buffer begins here";
        case ReadError::truncated_header:
            return "the data ends inside an item's header";
        case ReadError::truncated_payload:
            return "an item reaches past the end of the data";
        case ReadError::missing_end:
            return "the data ends without BUFFER_END";
        case ReadError::bad_array:
            return "an array's count, size and padding contradict each other";
        case ReadError::bad_container_begin:
            return "a CONTAINER_BEGIN is too short for a container type";
        case ReadError::container_mismatch:
            return "a CONTAINER_END has another id than the container it ends";
        case ReadError::unopened_container:
            return "a CONTAINER_END stands outside of any container";
        case ReadError::unclosed_container:
            return "BUFFER_END stands inside a container";
        case ReadError::nested_too_deep:
            return "containers are nested too deep";
    }
    return "unknown error";
}

bool Reader::fail(ReadError error) {
    error_ = error;
    return false;
}

bool Reader::next(Item& item) {
    if (done_ || error_ != ReadError::none)
        return false;
    if (closing_to_ < depth_) {
        item = Item{};
        item.type = KCDATA_TYPE_CONTAINER_END;
        item.offset = offset_;
        item.number = number_;
        item.kind = ItemKind::container_end;
        item.flags = item.container_id = open_ids_[--depth_];
        return true;
    }
    closing_to_ = no_closing;
    offset_ = following_;
    number_ = following_number_;

    const std::span<const std::byte> rest = buffer_.subspan(offset_);
    if (rest.size() < sizeof(ItemHeader)) {
        if (magic_ == 0)
            return fail(ReadError::bad_magic);
        return fail(rest.empty() ? ReadError::missing_end : ReadError::truncated_header);
    }
    ItemHeader header;
    std::memcpy(&header, rest.data(), sizeof(header));
    if (magic_ == 0 && !is_begin_magic(header.type))
        return fail(ReadError::bad_magic);
    if (header.size > rest.size() - sizeof(header))
        return fail(ReadError::truncated_payload);

    following_ = offset_ + sizeof(header) + header.size;
    following_number_ = number_ + 1;
    item = Item{};
    item.type = header.type;
    item.flags = header.flags;
    item.offset = offset_;
    item.number = number_;
    item.payload = rest.subspan(sizeof(header), header.size);

    if (magic_ == 0 || header.type == magic_) {
        magic_ = header.type;
        item.kind = ItemKind::begin;
        item.payload = item.payload.first(plain_payload_size(header));
        return true;
    }
    if (header.type == KCDATA_TYPE_BUFFER_END) {
        if (depth_ != 0)
            return fail(ReadError::unclosed_container);
        item.kind = ItemKind::end;
        offset_ = following_;
        done_ = true;
        return true;
    }
    if (header.type == KCDATA_TYPE_CONTAINER_BEGIN)
        return take_container_begin(item);
    if (header.type == KCDATA_TYPE_CONTAINER_END)
        return take_container_end(item);
    if (is_array(header.type))
        return fill_array(item) || fail(ReadError::bad_array);
    item.kind = ItemKind::plain;
    item.payload = item.payload.first(plain_payload_size(header));
    return true;
}

bool Reader::take_container_begin(Item& item) {
    if (item.payload.size() < sizeof(item.container_type))
        return fail(ReadError::bad_container_begin);
    if (depth_ == max_nesting)
        return fail(ReadError::nested_too_deep);
    item.kind = ItemKind::container_begin;
    std::memcpy(&item.container_type, item.payload.data(), sizeof(item.container_type));
    item.container_id = item.flags;
    open_ids_[depth_++] = item.flags;
    return true;
}

bool Reader::take_container_end(Item& item) {
    if (depth_ == 0)
        return fail(ReadError::unopened_container);
    if (open_ids_[depth_ - 1] != item.flags)
        return fail(ReadError::container_mismatch);
    item.kind = ItemKind::container_end;
    item.container_id = item.flags;
    --depth_;
    return true;
}

bool Reader::resume() {
    switch (error_) {
        case ReadError::bad_array:
        case ReadError::bad_container_begin:
        case ReadError::unopened_container:
            break;
        case ReadError::container_mismatch: {
            ItemHeader header;
            std::memcpy(&header, buffer_.data() + offset_, sizeof(header));
            for (std::size_t depth = depth_; depth > 0; --depth)
                if (open_ids_[depth - 1] == header.flags) {
                    closing_to_ = depth - 1;
                    break;
                }
            break;
        }
        case ReadError::unclosed_container:
            closing_to_ = 0;
            following_ = offset_;
            following_number_ = number_;
            break;
        default:
            return false;
    }
    error_ = ReadError::none;
    return true;
}

Item Reader::again(std::size_t offset) const {
    const std::span<const std::byte> rest = buffer_.subspan(offset);
    ItemHeader header;
    std::memcpy(&header, rest.data(), sizeof(header));
    Item item;
    item.type = header.type;
    item.flags = header.flags;
    item.offset = offset;
    item.payload = rest.subspan(sizeof(header), header.size);
    if (is_array(header.type))
        static_cast<void>(fill_array(item));
    else
        item.payload = item.payload.first(plain_payload_size(header));
    return item;
}

Reader Reader::inside(std::size_t offset, std::uint64_t number) const {
    ItemHeader header;
    std::memcpy(&header, buffer_.data() + offset, sizeof(header));
    Reader reader = *this;
    reader.following_ = offset + sizeof(header) + header.size;
    reader.following_number_ = number + 1;
    reader.open_ids_[reader.depth_++] = header.flags;
    return reader;
}

}  // namespace kcdata
