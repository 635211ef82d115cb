#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kcdata/format.hpp"
#include "kcdata/names.hpp"
#include "kcdata/schema.hpp"

namespace tools {

/// How many buffers inside each other are looked into; what is deeper is bytes. Nobody writes as
/// many.
inline constexpr std::size_t max_nested_buffers = 8;

/// XNU's name of an item, element or container type, those of the format itself among them; empty
/// if it has none.
std::string_view type_name(std::uint32_t type);
/// The same, or the number as 0x... .
std::string type_text(std::uint32_t type);
/// The type XNU calls `name`.
std::optional<std::uint32_t> type_called(std::string_view name);
/// libkdd's key of a container type, or the number if it has none.
std::string container_key(std::uint32_t container_type);
/// A number as texts of items have it: decimal, or hexadecimal behind 0x.
std::optional<std::uint64_t> number_in(std::string_view text);

/// The fields of a type as they stand in a payload, whether libkdd decodes them or not; none: not
/// known.
std::span<const kcdata::Field> fields_of(std::uint32_t type);
/// Where the fields end: the size of the struct. A field that takes the rest of its item, or a
/// list without a length, counts as empty.
std::size_t fields_size(std::span<const kcdata::Field> fields);

inline bool takes_the_rest(const kcdata::Field& field) {
    return field.count == kcdata::Field::unbounded;
}

/// As many whole values of the field as are in `payload`; none: they and all behind them are cut
/// off, or the field is a list without a length.
std::span<const std::byte> field_bytes(const kcdata::Field& field,
                                       std::span<const std::byte> payload);

/// The names of the values of the type's field, or nullptr. Of a described item they depend on its
/// `description`.
const kcdata::ValueNames* value_names(std::uint32_t type, const kcdata::Field& field,
                                      std::string_view description);

/// The flags that XNU's writer gives an item that is no array and no container.
constexpr std::uint64_t writer_flags(std::uint32_t type, std::size_t padding) {
    if (type == kcdata::KCDATA_TYPE_BUFFER_END)
        return 0;
    const std::uint64_t count = padding & kcdata::KCDATA_FLAGS_STRUCT_PADDING_MASK;
    return type == kcdata::KCDATA_TYPE_TYPEDEFINTION
               ? count
               : kcdata::KCDATA_FLAGS_STRUCT_HAS_PADDING | count;
}

}  // namespace tools
