#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>

#include "kcdata/format.hpp"
#include "kcdata/result.hpp"

namespace kcdata {

/// The allocation callback of a Writer: supplies the next chunk when an item does not fit.
class Extender {
  public:
    /// `used` bytes of the current chunk hold items; the rest of it may be given away.
    /// Returns a chunk of at least `needed` bytes, 8-byte aligned, or an empty span when there is
    /// none. Any context the writer is used in, quiesced included: must not block or allocate.
    virtual std::span<std::byte> next_chunk(std::size_t used, std::size_t needed) = 0;

  protected:
    ~Extender() = default;
};

/// The description of a described value, laid out as in the item: at most 31 characters.
struct Description {
    char text[description_size] = {};

    template <std::size_t size>
    consteval Description(const char (&string)[size]) {
        static_assert(size <= description_size);
        for (std::size_t n = 0; n < size; ++n)
            text[n] = string[n];
    }
};

/// Bytes of a buffer that is sure to hold so many items with so many bytes of payload in all, BEGIN
/// and BUFFER_END included (kcdata_estimate_required_buffer_size). KERN_INVALID_ARGUMENT: more than
/// can be counted.
inline Result<std::size_t> estimate_required_buffer_size(std::size_t items,
                                                         std::size_t payload_bytes) {
    std::size_t size = 0;
    if (__builtin_mul_overflow(items, sizeof(ItemHeader) + alignment - 1, &size) ||
        __builtin_add_overflow(size, 2 * sizeof(ItemHeader), &size) ||
        __builtin_add_overflow(size, payload_bytes, &size))
        return KERN_INVALID_ARGUMENT;
    return size;
}

/// Appends kcdata items to a buffer it does not own.
///
/// Every append either writes a whole item (header, payload, zeroed padding) or changes nothing and
/// returns the error. Room for the BUFFER_END header is always kept. No locks, no allocation: may
/// be used in any context, by one CPU at a time. The facts followed are those of
/// osfmk/kern/kern_cdata.c.
///
/// Errors: KERN_INSUFFICIENT_BUFFER_SIZE (does not fit, and no extender or it has nothing left),
/// KERN_INVALID_ARGUMENT (a size overflows 32 bits, or a description is longer than 31 bytes).
///
/// An item never spans chunks, and every chunk keeps room for a BUFFER_END behind its items.
class Writer {
  public:
    Writer() = default;
    /// Writes into `buffer` (8-byte aligned), without a BEGIN item: a chunk, or use begin() first.
    explicit Writer(std::span<std::byte> buffer, Extender* extender = nullptr)
        : buffer_(buffer), extender_(extender) {}

    /// Writes the BEGIN item of a buffer of the kind `magic` names.
    kern_return begin(std::uint32_t magic);
    /// Writes BUFFER_END in the room kept for it; used() then counts it. Whatever is appended
    /// afterwards fails with KERN_INSUFFICIENT_BUFFER_SIZE.
    kern_return end();

    /// Appends an item of `size` payload bytes and returns the zeroed payload for the caller to
    /// fill. The span stays valid as long as the buffer: chunks never move.
    Result<std::span<std::byte>> reserve(std::uint32_t type, std::size_t size);
    /// The same for an array of `count` elements of `element_size` bytes.
    Result<std::span<std::byte>> reserve_array(std::uint32_t element_type, std::size_t element_size,
                                               std::size_t count);

    /// Appends an item whose payload is a T, or an array of them, for the caller to assign as a
    /// whole: it is not zeroed. Stays valid as long as the buffer.
    template <typename T>
    Result<T*> place(std::uint32_t type) {
        static_assert(std::is_trivial_v<T> && alignof(T) <= 8);
        constexpr std::size_t padding = padding_for(sizeof(T));
        std::byte* const payload =
            claim_item(type, sizeof(T), padding, KCDATA_FLAGS_STRUCT_HAS_PADDING | padding);
        if (payload == nullptr) [[unlikely]]
            return KERN_INSUFFICIENT_BUFFER_SIZE;
        return new (payload) T;
    }
    template <typename T>
    Result<std::span<T>> place_array(std::uint32_t element_type, std::size_t count) {
        static_assert(std::is_trivial_v<T> && alignof(T) <= 8);
        if (count > max_payload / sizeof(T)) [[unlikely]]
            return KERN_INVALID_ARGUMENT;
        const std::size_t size = count * sizeof(T);
        const std::size_t padding = padding_for(size);
        std::byte* const payload =
            claim_item(KCDATA_TYPE_ARRAY_PAD0 + static_cast<std::uint32_t>(padding), size, padding,
                       std::uint64_t{element_type} << 32 | count);
        if (payload == nullptr) [[unlikely]]
            return KERN_INSUFFICIENT_BUFFER_SIZE;
        // Array new might want room of its own.
        return std::span<T>(reinterpret_cast<T*>(payload), count);
    }

    /// Where the next place_array<T>() will find its elements if they have room in the current
    /// chunk: so many, for a caller that does not know their number before it has written them
    /// there.
    template <typename T>
    std::span<T> array_room() const {
        static_assert(std::is_trivial_v<T> && alignof(T) <= 8);
        constexpr std::size_t besides = 2 * sizeof(ItemHeader) + alignment;  // END and padding
        const std::size_t room = buffer_.size() - used_;
        if (room < besides)
            return {};
        return {reinterpret_cast<T*>(buffer_.data() + used_ + sizeof(ItemHeader)),
                (room - besides) / sizeof(T)};
    }

    kern_return append(std::uint32_t type, std::span<const std::byte> payload);
    template <typename T>
    kern_return append_value(std::uint32_t type, const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        return append(type, std::as_bytes(std::span<const T, 1>(&value, 1)));
    }
    template <typename T>
    kern_return append_array(std::uint32_t element_type, std::span<const T> elements) {
        static_assert(std::is_trivially_copyable_v<T>);
        auto payload = place_array<T>(element_type, elements.size());
        if (!payload.ok())
            return payload.error();
        if (!elements.empty())
            std::memcpy(payload.value().data(), elements.data(), elements.size_bytes());
        return KERN_SUCCESS;
    }

    kern_return container_begin(std::uint32_t container_type, std::uint64_t id) {
        constexpr std::size_t size = sizeof(container_type);
        std::byte* const payload =
            claim_item(KCDATA_TYPE_CONTAINER_BEGIN, size, padding_for(size), id);
        if (payload == nullptr) [[unlikely]]
            return KERN_INSUFFICIENT_BUFFER_SIZE;
        std::memcpy(payload, &container_type, size);
        last_is_container_begin_ = true;
        return KERN_SUCCESS;
    }
    kern_return container_end(std::uint64_t id) {
        return claim_item(KCDATA_TYPE_CONTAINER_END, 0, 0, id) != nullptr
                   ? KERN_SUCCESS
                   : KERN_INSUFFICIENT_BUFFER_SIZE;
    }
    /// Takes back a container_begin that nothing was appended after; KERN_INVALID_ARGUMENT
    /// otherwise.
    kern_return undo_container_begin();

    /// A u32 or u64 that carries its own name (at most 31 characters).
    kern_return append_uint32_with_description(const char* description, std::uint32_t value);
    kern_return append_uint64_with_description(const char* description, std::uint64_t value);
    kern_return append_uint32_with_description(const Description& description,
                                               std::uint32_t value) {
        struct Described {
            Description description;
            std::uint32_t value;
        };
        constexpr std::size_t padding = padding_for(sizeof(Described));
        std::byte* const payload = claim_item(KCDATA_TYPE_UINT32_DESC, sizeof(Described), padding,
                                              KCDATA_FLAGS_STRUCT_HAS_PADDING | padding);
        if (payload == nullptr) [[unlikely]]
            return KERN_INSUFFICIENT_BUFFER_SIZE;
        new (payload) Described{description, value};
        return KERN_SUCCESS;
    }

    /// Copies whole items that another Writer made (a chunk) as they are. KERN_INVALID_ARGUMENT:
    /// not a multiple of 16 bytes.
    kern_return append_items(std::span<const std::byte> items);

    /// Takes memory from the end of the buffer, which is that much shorter from then on; at least
    /// `size` bytes, 8-byte aligned, not zeroed. For what lives as long as the buffer is written.
    /// KERN_INSUFFICIENT_BUFFER_SIZE: not there, or a quarter of the buffer or more: it is for
    /// items. KERN_INVALID_ARGUMENT: there is an extender, so that the buffer may change.
    Result<std::span<std::byte>> allocate_end(std::size_t size);

    /// Bytes of the current chunk that hold items. Does not count the room kept for BUFFER_END.
    std::size_t used() const { return used_; }
    std::span<std::byte> buffer() const { return buffer_; }

  private:
    /// The largest payload whose item, padded and with an END behind it, has 32-bit sizes.
    static constexpr std::size_t max_payload = UINT32_MAX - 3 * alignment;

    /// Takes `size` bytes, keeping the room for BUFFER_END behind them; nullptr if there is none.
    std::byte* claim(std::size_t size) {
        if (buffer_.size() - used_ < size + sizeof(ItemHeader)) [[unlikely]] {
            if (!extend(size + sizeof(ItemHeader)))
                return nullptr;
        }
        std::byte* const claimed = buffer_.data() + used_;
        used_ += size;
        last_is_container_begin_ = false;
        return claimed;
    }
    /// Makes a chunk with room for `needed` bytes the current one.
    bool extend(std::size_t needed);
    /// Takes room for an item and writes all of it but the payload, which is returned.
    std::byte* claim_item(std::uint32_t type, std::size_t size, std::size_t padding,
                          std::uint64_t flags) {
        std::byte* const item = claim(sizeof(ItemHeader) + size + padding);
        if (item == nullptr) [[unlikely]]
            return nullptr;
        new (item) ItemHeader{type, static_cast<std::uint32_t>(size + padding), flags};
        if (padding != 0)
            std::memset(item + sizeof(ItemHeader) + size, 0, padding);
        return item + sizeof(ItemHeader);
    }
    Result<std::span<std::byte>> claim_plain(std::uint32_t type, std::size_t size);
    kern_return append_described(std::uint32_t type, const char* description,
                                 std::span<const std::byte> value);

    std::span<std::byte> buffer_{};
    std::size_t used_ = 0;
    bool last_is_container_begin_ = false;
    Extender* extender_ = nullptr;
};

}  // namespace kcdata
