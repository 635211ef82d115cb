#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kcdata {

/// The fixed header in front of every item. `size` counts the bytes that follow, padding included;
/// the meaning of `flags` depends on the kind of item. (osfmk/kern/kcdata.h)
struct ItemHeader {
    std::uint32_t type;
    std::uint32_t size;
    std::uint64_t flags;
};
static_assert(sizeof(ItemHeader) == 16);
/// The header at `bytes`, which are at least so many and need not be aligned.
inline ItemHeader load_header(const std::byte* bytes) {
    ItemHeader header;
    std::memcpy(&header, bytes, sizeof(header));
    return header;
}
// All numbers of the format are little-endian; structs are copied as they are.
static_assert(std::endian::native == std::endian::little);

/// Payloads are padded to this many bytes by the writer.
inline constexpr std::size_t alignment = 16;

inline constexpr std::uint32_t KCDATA_BUFFER_BEGIN_STACKSHOT = 0x59a25807;
inline constexpr std::uint32_t KCDATA_BUFFER_BEGIN_DELTA_STACKSHOT = 0xde17a59a;
inline constexpr std::uint32_t KCDATA_BUFFER_BEGIN_CRASHINFO = 0xdeadf157;
inline constexpr std::uint32_t KCDATA_BUFFER_BEGIN_OS_REASON = 0x53a20900;
inline constexpr std::uint32_t KCDATA_BUFFER_BEGIN_XNUPOST_CONFIG = 0x1e21c09f;
inline constexpr std::uint32_t KCDATA_BUFFER_BEGIN_BTINFO = 0x46414e47;
inline constexpr std::uint32_t KCDATA_BUFFER_BEGIN_COMPRESSED = 0x434f4d50;
inline constexpr std::uint32_t KCDATA_TYPE_BUFFER_END = 0xf19158ed;

inline constexpr std::uint32_t KCDATA_TYPE_STRING_DESC = 0x1;
inline constexpr std::uint32_t KCDATA_TYPE_UINT32_DESC = 0x2;
inline constexpr std::uint32_t KCDATA_TYPE_UINT64_DESC = 0x3;
inline constexpr std::uint32_t KCDATA_TYPE_INT32_DESC = 0x4;
inline constexpr std::uint32_t KCDATA_TYPE_INT64_DESC = 0x5;
inline constexpr std::uint32_t KCDATA_TYPE_BINDATA_DESC = 0x6;
/// Bytes of the description string in front of a described value, NUL included.
inline constexpr std::size_t description_size = 32;

inline constexpr std::uint32_t KCDATA_TYPE_ARRAY = 0x11;
inline constexpr std::uint32_t KCDATA_TYPE_TYPEDEFINTION = 0x12;
inline constexpr std::uint32_t KCDATA_TYPE_CONTAINER_BEGIN = 0x13;
inline constexpr std::uint32_t KCDATA_TYPE_CONTAINER_END = 0x14;
/// 0x20 to 0x2f: an array whose low nibble is its number of padding bytes.
inline constexpr std::uint32_t KCDATA_TYPE_ARRAY_PAD0 = 0x20;
inline constexpr std::uint32_t KCDATA_TYPE_ARRAY_PADf = 0x2f;

inline constexpr std::uint64_t KCDATA_FLAGS_STRUCT_PADDING_MASK = 0xf;
inline constexpr std::uint64_t KCDATA_FLAGS_STRUCT_HAS_PADDING = 0x80;

/// Whether `type` is that of a BEGIN item.
constexpr bool is_begin_magic(std::uint32_t type) {
    switch (type) {
        case KCDATA_BUFFER_BEGIN_STACKSHOT:
        case KCDATA_BUFFER_BEGIN_DELTA_STACKSHOT:
        case KCDATA_BUFFER_BEGIN_CRASHINFO:
        case KCDATA_BUFFER_BEGIN_OS_REASON:
        case KCDATA_BUFFER_BEGIN_XNUPOST_CONFIG:
        case KCDATA_BUFFER_BEGIN_BTINFO:
        case KCDATA_BUFFER_BEGIN_COMPRESSED:
            return true;
        default:
            return false;
    }
}

/// Padding bytes behind a payload of `size` bytes: 0 to 15.
constexpr std::size_t padding_for(std::size_t size) {
    return (alignment - size % alignment) % alignment;
}
/// Bytes of an item of `payload` bytes as the writer makes it: header, payload, padding.
constexpr std::size_t item_size(std::size_t payload) {
    return sizeof(ItemHeader) + payload + padding_for(payload);
}
/// Payload of a KCDATA_TYPE_UINT64_DESC.
inline constexpr std::size_t described_uint64_size = description_size + sizeof(std::uint64_t);

}  // namespace kcdata
