#include "tools/item_walk.hpp"

#include <algorithm>

#include "kcdata/compression.hpp"
#include "kcdata/resynchronization.hpp"
#include "kcdata/schema.hpp"

namespace tools {

using kcdata::ItemHeader;

namespace {

/// Whether what comes behind an item may be one. Less than to make sense by itself: most types that
/// are not known are of releases to come.
bool is_possible(const ItemHeader& header) {
    constexpr std::uint64_t plain_flags =
        kcdata::KCDATA_FLAGS_STRUCT_PADDING_MASK | kcdata::KCDATA_FLAGS_STRUCT_HAS_PADDING;
    if (kcdata::is_array(header.type) || header.type == kcdata::KCDATA_TYPE_BUFFER_END ||
        header.type == kcdata::KCDATA_TYPE_CONTAINER_BEGIN ||
        header.type == kcdata::KCDATA_TYPE_CONTAINER_END)
        return true;
    // Nobody writes a type of 0, and an item of a type we do not know has no strange flags too.
    return kcdata::find_type(header.type) != nullptr ||
           (header.type != 0 && (header.flags & ~plain_flags) == 0);
}

}  // namespace

const char* item_problem_text(ItemProblem problem) {
    switch (problem) {
        case ItemProblem::none:
            return "nothing";
        case ItemProblem::no_buffer:
            return "no kcdata buffer begins here";
        case ItemProblem::header_cut:
            return "the data ends inside an item's header";
        case ItemProblem::past_the_end:
            return "an item reaches past the end of the data";
        case ItemProblem::no_sense:
            return "no item that makes sense";
        case ItemProblem::array_contradiction:
            return "count, size and padding contradict each other";
        case ItemProblem::container_type_cut:
            return "too short for a container type";
        case ItemProblem::end_outside:
            return "it stands outside of any container";
        case ItemProblem::end_of_another:
            return "it has another id than the container it ends";
        case ItemProblem::end_inside_container:
            return "it stands inside a container";
        case ItemProblem::end_missing:
            return "the data ends without BUFFER_END";
    }
    return "unknown problem";
}

bool ItemWalk::read_item(std::size_t offset, ItemHeader& header) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(header))
        return false;
    header = kcdata::load_header(bytes_.data() + offset);
    return header.size <= bytes_.size() - offset - sizeof(header);
}

bool ItemWalk::begins_buffer(std::size_t offset) const {
    ItemHeader header;
    return read_item(offset, header) && kcdata::is_begin_magic(header.type);
}

bool ItemWalk::followed(const ItemHeader& header) const {
    const std::size_t end = offset_ + sizeof(header) + header.size;
    return end == bytes_.size() || kcdata::items_follow(bytes_, end, 1);
}

std::size_t ItemWalk::resynchronize() const {
    const std::span<const std::byte> buffer = bytes_.subspan(base_);
    std::size_t offset = kcdata::find_items(buffer, offset_ - base_);
    // Behind a buffer, items are only looked for in another one.
    while (!inside_ && offset != buffer.size() && !begins_buffer(base_ + offset))
        offset = kcdata::find_items(buffer, offset);
    return base_ + offset;
}

bool ItemWalk::next(Stretch& stretch) {
    stretch = Stretch{};
    if (offset_ == bytes_.size())
        return false;
    if (stream_end_ > offset_ && offset_ == stream_begin_) {
        take_bytes(stretch, Stretch::Kind::stream, stream_end_);
        return true;
    }
    if (!inside_) {
        // A piece out of a buffer is welcome too.
        if (!begins_buffer(offset_) && !(offset_ == 0 && kcdata::items_follow(bytes_, 0, 2))) {
            const bool first = offset_ == 0;
            take_bytes(stretch, first ? Stretch::Kind::damaged : Stretch::Kind::behind,
                       resynchronize());
            if (first)
                stretch.problem = ItemProblem::no_buffer;
            return true;
        }
        inside_ = true;
        base_ = offset_;
        open_.clear();
    }
    ItemHeader header;
    if (!read_item(offset_, header)) {
        const bool cut = bytes_.size() - offset_ < sizeof(header);
        take_bytes(stretch, Stretch::Kind::damaged, resynchronize());
        stretch.problem = cut ? ItemProblem::header_cut : ItemProblem::past_the_end;
        return true;
    }
    if (offset_ != base_ && !is_possible(header) && !followed(header)) {
        take_bytes(stretch, Stretch::Kind::damaged, resynchronize());
        stretch.problem = ItemProblem::no_sense;
        return true;
    }
    take_item(stretch, header);
    return true;
}

void ItemWalk::take_item(Stretch& stretch, const ItemHeader& header) {
    stretch.offset = offset_;
    stretch.header = header;
    stretch.data = bytes_.subspan(offset_ + sizeof(header), header.size);
    stretch.payload = stretch.data;
    if (kcdata::is_array(header.type)) {
        stretch.array = kcdata::array_layout(header);
        if (stretch.array.valid)
            stretch.payload = stretch.data.first(stretch.array.count * stretch.array.element_size);
        else
            stretch.problem = ItemProblem::array_contradiction;
    } else if (header.type == kcdata::KCDATA_TYPE_CONTAINER_BEGIN) {
        if (header.size < sizeof(std::uint32_t))
            stretch.problem = ItemProblem::container_type_cut;
        else
            stretch.payload = stretch.data.first(sizeof(std::uint32_t));
    } else if (header.type != kcdata::KCDATA_TYPE_CONTAINER_END) {
        stretch.payload = stretch.data.first(kcdata::plain_payload_size(header));
    }
    if (header.type == kcdata::KCDATA_BUFFER_BEGIN_COMPRESSED && offset_ == base_) {
        kcdata::CompressedHead head;
        if (kcdata::has_stream(kcdata::read_compressed_head(bytes_.subspan(offset_), head))) {
            stream_begin_ = offset_ + kcdata::compressed_head_size;
            stream_end_ = stream_begin_ + head.stream.size();
        }
    }
    follow_containers(stretch);
    offset_ = stretch.end();
    if (header.type == kcdata::KCDATA_TYPE_BUFFER_END)
        inside_ = false;
}

void ItemWalk::follow_containers(Stretch& stretch) {
    switch (stretch.header.type) {
        case kcdata::KCDATA_TYPE_CONTAINER_BEGIN:
            stretch.depth = open_.size();
            open_.push_back(stretch.header.flags);
            return;
        case kcdata::KCDATA_TYPE_CONTAINER_END: {
            const auto inner = std::find(open_.rbegin(), open_.rend(), stretch.header.flags);
            if (open_.empty())
                stretch.problem = ItemProblem::end_outside;
            else if (inner != open_.rbegin())
                stretch.problem = ItemProblem::end_of_another;
            // Where containers were not ended they end with the one around them.
            if (inner != open_.rend())
                open_.erase(inner.base() - 1, open_.end());
            break;
        }
        case kcdata::KCDATA_TYPE_BUFFER_END:
            if (!open_.empty())
                stretch.problem = ItemProblem::end_inside_container;
            open_.clear();
            break;
        default:
            break;
    }
    stretch.depth = open_.size();
}

ItemProblem ItemWalk::problem_at_end() const {
    return inside_ ? ItemProblem::end_missing : ItemProblem::none;
}

void ItemWalk::take_bytes(Stretch& stretch, Stretch::Kind kind, std::size_t end) {
    stretch.kind = kind;
    stretch.depth = open_.size();
    stretch.offset = offset_;
    stretch.data = bytes_.subspan(offset_, end - offset_);
    offset_ = end;
}

}  // namespace tools
