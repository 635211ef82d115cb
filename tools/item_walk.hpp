#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kcdata/format.hpp"
#include "kcdata/payload.hpp"

namespace tools {

/// What is wrong at one place of a file.
enum class ItemProblem : std::uint8_t {
    none,
    no_buffer,             ///< the file does not begin with a BEGIN item
    header_cut,            ///< the data ends inside an item's header
    past_the_end,          ///< an item reaches past the end of the data
    no_sense,              ///< no item that makes sense
    array_contradiction,   ///< count, size and padding of an array
    container_type_cut,    ///< a CONTAINER_BEGIN too short for a container type
    end_outside,           ///< a CONTAINER_END outside of any container
    end_of_another,        ///< a CONTAINER_END with another id than the innermost container
    end_inside_container,  ///< a BUFFER_END inside a container
    end_missing,           ///< the data ends without BUFFER_END
};
const char* item_problem_text(ItemProblem problem);

/// One stretch of a file: an item as it stands there, or bytes between items.
struct Stretch {
    enum class Kind : std::uint8_t {
        item,     ///< header and data
        stream,   ///< the zlib stream of a compressed buffer
        behind,   ///< no item: behind a BUFFER_END
        damaged,  ///< no item, where one must be
    };

    Kind kind = Kind::item;
    /// From the start of the file.
    std::size_t offset = 0;
    /// Items: all that follows the header, padding included. Otherwise the bytes themselves.
    std::span<const std::byte> data{};

    // Items only.
    kcdata::ItemHeader header{};
    /// The part of `data` that is not padding, by the format's rules; of an array the elements. All
    /// of `data` if the rules contradict each other.
    std::span<const std::byte> payload{};
    kcdata::ArrayLayout array{};

    /// How many containers are open around it.
    std::size_t depth = 0;
    ItemProblem problem = ItemProblem::none;

    bool sound() const { return problem == ItemProblem::none; }
    bool is_item() const { return kind == Kind::item; }
    bool is_array() const { return is_item() && kcdata::is_array(header.type); }
    std::span<const std::byte> padding() const { return data.subspan(payload.size()); }
    std::size_t end() const {
        return offset + data.size() + (is_item() ? sizeof(kcdata::ItemHeader) : 0);
    }
};

/// Steps through a file, stretch by stretch: whatever the bytes are, each is in exactly one.
///
/// Where the items cannot be followed any further (or what stands there is most likely none), the
/// walk goes on at the next place where items make sense (kcdata::find_items()).
class ItemWalk {
  public:
    explicit ItemWalk(std::span<const std::byte> bytes) : bytes_(bytes) {}

    /// False at the end of the file.
    bool next(Stretch& stretch);
    /// Whether the file ends as it must, once next() has returned false.
    ItemProblem problem_at_end() const;

  private:
    /// The header at `offset` if the item fits into the file.
    bool read_item(std::size_t offset, kcdata::ItemHeader& header) const;
    bool begins_buffer(std::size_t offset) const;
    /// Whether an item that makes sense, or the end of the file, comes behind the item at offset_.
    bool followed(const kcdata::ItemHeader& header) const;
    /// The next place behind offset_ to go on from.
    std::size_t resynchronize() const;
    void take_item(Stretch& stretch, const kcdata::ItemHeader& header);
    void follow_containers(Stretch& stretch);
    void take_bytes(Stretch& stretch, Stretch::Kind kind, std::size_t end);

    std::span<const std::byte> bytes_;
    std::size_t offset_ = 0;
    /// Where the buffer begins: what items are aligned to.
    std::size_t base_ = 0;
    bool inside_ = false;
    /// Ids of the containers that are open, the innermost last.
    std::vector<std::uint64_t> open_{};
    // Of the compressed buffer that is being walked; empty if none is.
    std::size_t stream_begin_ = 0;
    std::size_t stream_end_ = 0;
};

}  // namespace tools
