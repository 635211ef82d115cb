#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "kcdata/format.hpp"
#include "kcdata/schema.hpp"

namespace tools {

inline bool is_zero(std::span<const std::byte> bytes) {
    return std::all_of(bytes.begin(), bytes.end(),
                       [](std::byte byte) { return byte == std::byte{0}; });
}

/// The text in front of the first NUL; all bytes if there is none.
inline std::string_view text_in(std::span<const std::byte> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return text.substr(0, text.find('\0'));
}

/// The description that a described item's payload begins with.
inline std::string_view description_in(std::span<const std::byte> payload) {
    return text_in(payload.first(std::min(kcdata::description_size, payload.size())));
}

/// The value at `bytes`, which need not be aligned.
template <typename T>
T load(const std::byte* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof(value));
    return value;
}

/// The value at the start of `bytes`, which holds at least its size; a negative one as 64 bits of
/// two's complement.
inline std::uint64_t load_value(kcdata::FieldType type, std::span<const std::byte> bytes) {
    const std::size_t size = kcdata::size_of(type);
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), size);
    if (kcdata::is_signed(type) && size < sizeof(value)) {
        const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
        value = (value ^ sign) - sign;
    }
    return value;
}

/// What follows the named fields of a KCDATA_TYPE_TYPEDEFINTION, once for each field it defines
/// (struct kcdata_subtype_descriptor).
inline constexpr std::size_t subtype_descriptor_size = 40;
inline constexpr auto subtype_descriptor = [] {
    using kcdata::Field;
    using enum kcdata::FieldType;
    return std::array{
        Field{.name = "kcs_flags", .type = u8, .offset = 0},
        Field{.name = "kcs_elem_type", .type = u8, .offset = 1},
        Field{.name = "kcs_elem_offset", .type = u16, .offset = 2},
        Field{.name = "kcs_elem_size", .type = u32, .offset = 4},
        Field{.name = "kcs_name", .type = character, .offset = 8, .count = 32},
    };
}();

}  // namespace tools
