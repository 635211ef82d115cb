#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/format.hpp"

namespace kcdata {

/// What is wrong at one place of a buffer. `none` means nothing is.
enum class [[nodiscard]] ReadError : std::uint8_t{
    none,
    bad_magic,            ///< the first item is no BEGIN item
    truncated_header,     ///< fewer than 16 bytes left for a header
    truncated_payload,    ///< the size reaches past the buffer
    missing_end,          ///< the bytes ran out before BUFFER_END
    bad_array,            ///< count, size and padding of an array contradict each other
    bad_container_begin,  ///< payload too short for a container type
    container_mismatch,   ///< CONTAINER_END with another id than the innermost begin
    unopened_container,   ///< CONTAINER_END outside of any container
    unclosed_container,   ///< BUFFER_END inside a container
    nested_too_deep,      ///< more containers inside each other than max_nesting
};
const char* read_error_text(ReadError error);

enum class ItemKind : std::uint8_t {
    begin,  ///< the BEGIN item; also the same magic again later on, which readers skip
    end,
    container_begin,
    container_end,
    array,
    plain,
};

/// One item, checked to lie inside the buffer.
struct Item {
    std::uint32_t type = 0;
    std::uint64_t flags = 0;
    /// Offset of the header from the start of the buffer.
    std::size_t offset = 0;
    /// How many items stand before it in the buffer, BEGIN included.
    std::uint64_t number = 0;
    ItemKind kind = ItemKind::plain;
    /// The payload without its padding (format rule "payload length": legacy cases included).
    std::span<const std::byte> payload{};
    /// Arrays: type, size and number of the elements; payload is exactly count * element_size
    /// bytes.
    std::uint32_t element_type = 0;
    std::size_t element_size = 0;
    std::size_t element_count = 0;
    /// Containers: type (begin only) and id.
    std::uint32_t container_type = 0;
    std::uint64_t container_id = 0;
};

/// Steps through the items of one buffer, BEGIN to BUFFER_END, checking everything it passes.
/// Owns no memory; takes any bytes. Where the next item is still known after an error, the reader
/// can go on there; otherwise the error ends the walk. Bytes behind BUFFER_END are not looked at.
/// A copy goes on by itself from where the original stands.
class Reader {
  public:
    static constexpr std::size_t max_nesting = 32;

    explicit Reader(std::span<const std::byte> buffer) : buffer_(buffer) {}

    /// Moves to the next item. Returns false at BUFFER_END (which is returned as an item first) and
    /// after an error; error() tells which.
    bool next(Item& item);

    ReadError error() const { return error_; }
    /// Where the error is; or, after BUFFER_END, the offset just behind it.
    std::size_t offset() const { return offset_; }
    /// The number of the item that has the error.
    std::uint64_t number() const { return number_; }
    /// How many containers are open around the item last returned; a container is open from its
    /// begin on, and no longer at its end.
    std::size_t depth() const { return depth_; }
    /// Id of the open container at `depth`, 1 to depth().
    std::uint64_t open_id(std::size_t depth) const { return open_ids_[depth - 1]; }
    /// Clears an error that can be gone on from; false if it cannot. Behind a container_mismatch
    /// or unclosed_container the containers that were not ended are: next() returns a
    /// container_end for each. An end that ends no open container at all is passed over. Behind a
    /// truncated_payload, whose size may be what is wrong, the reader goes on at the next place
    /// where items make sense (find_items()); following() tells where.
    bool resume();
    /// Offset of the item to look at next.
    std::size_t following() const { return following_; }

    /// The plain item or array at `offset`, once more: next() has returned it, here or in a copy.
    Item again(std::size_t offset) const;
    /// A reader of what is inside of the container that begins with the item at `offset`, number
    /// `number`, which lies directly in the innermost container open here. It goes on behind the
    /// container too: depth() tells.
    Reader inside(std::size_t offset, std::uint64_t number) const;

  private:
    bool fail(ReadError error);
    bool find_following();
    bool take_container_begin(Item& item);
    bool take_container_end(Item& item);

    std::span<const std::byte> buffer_;
    /// Of the item to look at next, and of the one behind it.
    std::size_t offset_ = 0;
    std::size_t following_ = 0;
    std::uint64_t number_ = 0;
    std::uint64_t following_number_ = 0;
    std::size_t depth_ = 0;
    /// Depth down to which containers are still to be ended, if that is below depth_.
    std::size_t closing_to_ = no_closing;
    std::uint64_t open_ids_[max_nesting] = {};
    /// Type of the BEGIN item; 0 before it.
    std::uint32_t magic_ = 0;
    ReadError error_ = ReadError::none;
    bool done_ = false;

    static constexpr std::size_t no_closing = max_nesting + 1;
};

}  // namespace kcdata
