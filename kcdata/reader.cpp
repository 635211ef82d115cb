#include "kcdata/reader.hpp"

#include <cstring>

#include "kcdata/payload.hpp"
#include "kcdata/resynchronization.hpp"
#include "kcdata/types.hpp"

namespace kcdata {

namespace {

/// Fills in what an array holds; false if its numbers contradict each other.
bool fill_array(Item& item, const ItemHeader& header) {
    const ArrayLayout layout = array_layout(header);
    item.kind = ItemKind::array;
    item.element_type = layout.element_type;
    item.element_size = layout.element_size;
    item.element_count = layout.count;
    item.payload = item.payload.first(layout.count * layout.element_size);
    return layout.valid;
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
    const ItemHeader header = load_header(rest.data());
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
        return fill_array(item, header) || fail(ReadError::bad_array);
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
            const ItemHeader header = load_header(buffer_.data() + offset_);
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
        case ReadError::truncated_payload:
            if (!find_following())
                return false;
            break;
        default:
            return false;
    }
    error_ = ReadError::none;
    return true;
}

bool Reader::find_following() {
    const ItemHeader header = load_header(buffer_.data() + offset_);
    // What follows there are the items of another buffer.
    if (header.type == KCDATA_TYPE_NESTED_KCDATA || magic_ == 0)
        return false;
    const std::size_t found = find_items(buffer_, offset_);
    if (found == buffer_.size())
        return false;
    following_ = found;
    following_number_ = number_ + 1;
    return true;
}

Item Reader::again(std::size_t offset) const {
    const std::span<const std::byte> rest = buffer_.subspan(offset);
    const ItemHeader header = load_header(rest.data());
    Item item;
    item.type = header.type;
    item.flags = header.flags;
    item.offset = offset;
    item.payload = rest.subspan(sizeof(header), header.size);
    if (is_array(header.type))
        static_cast<void>(fill_array(item, header));
    else
        item.payload = item.payload.first(plain_payload_size(header));
    return item;
}

Reader Reader::inside(std::size_t offset, std::uint64_t number) const {
    const ItemHeader header = load_header(buffer_.data() + offset);
    Reader reader = *this;
    reader.following_ = offset + sizeof(header) + header.size;
    reader.following_number_ = number + 1;
    reader.open_ids_[reader.depth_++] = header.flags;
    return reader;
}

}  // namespace kcdata
