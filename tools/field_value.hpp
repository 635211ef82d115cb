#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "kcdata/schema.hpp"

namespace tools {

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
