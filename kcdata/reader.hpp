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
    container_mismatch,   ///< CONTAINER_END without a begin, or with another id
    unclosed_container,   ///< BUFFER_END inside a container
    nested_too_deep,      ///< more containers inside each other than max_nesting
};
const char* read_error_text(ReadError error);

enum class ItemKind : std::uint8_t { begin, end, container_begin, container_end, array, plain };

/// One item, checked to lie inside the buffer.
struct Item {
    std::uint32_t type = 0;
    std::uint64_t flags = 0;
    /// Offset of the header from the start of the buffer.
    std::size_t offset = 0;
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
/// Owns no memory; takes any bytes. After a bad_array or bad_container_begin the reader can go on
/// at the next item; the other errors end the walk.
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
    /// How many containers are open around the item last returned.
    std::size_t depth() const { return depth_; }
    /// Clears an error that can be gone on from; false if it cannot.
    bool resume();

  private:
    std::span<const std::byte> buffer_;
    std::size_t offset_ = 0;
    std::size_t depth_ = 0;
    std::uint64_t open_ids_[max_nesting] = {};
    ReadError error_ = ReadError::none;
    bool begun_ = false;
    bool done_ = false;
};

}  // namespace kcdata
