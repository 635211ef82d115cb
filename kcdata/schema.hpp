#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kcdata {

/// Type of one value; the numbers are KCDATA_SUBTYPE_TYPES (KC_ST_*), as type definitions carry
/// them.
enum class FieldType : std::uint8_t {
    character = 1,
    i8 = 2,
    u8 = 3,
    i16 = 4,
    u16 = 5,
    i32 = 6,
    u32 = 7,
    i64 = 8,
    u64 = 9,
};

constexpr std::size_t size_of(FieldType type) {
    switch (type) {
        case FieldType::character:
        case FieldType::i8:
        case FieldType::u8:
            return 1;
        case FieldType::i16:
        case FieldType::u16:
            return 2;
        case FieldType::i32:
        case FieldType::u32:
            return 4;
        case FieldType::i64:
        case FieldType::u64:
            return 8;
    }
    return 0;
}

constexpr bool is_signed(FieldType type) {
    return type == FieldType::i8 || type == FieldType::i16 || type == FieldType::i32 ||
           type == FieldType::i64;
}

/// One field of a record.
struct Field {
    /// Count of a text or blob that takes the rest of its item.
    static constexpr std::uint32_t unbounded = 65535;
    /// Characters of a name that libkdd keeps.
    static constexpr std::size_t max_key = 31;

    std::string_view name;  ///< XNU's
    FieldType type;
    std::uint32_t offset;     ///< bytes from the start of the payload
    std::uint32_t count = 1;  ///< of values of `type`, one behind the other

    // What libkdd makes of it.
    std::string_view key{};  ///< its key in the decoded record
    FieldType read_as{};     ///< the type it is printed as
    bool decoded = true;     ///< false: libkdd leaves it out

    bool is_address = false;  ///< a place in memory, or the slide of one

    constexpr std::size_t element_size() const { return size_of(type); }
    constexpr std::size_t size() const { return element_size() * count; }
};

/// How a record becomes part of its parent when it is decoded, by libkdd's rules.
enum class Shape : std::uint8_t {
    basic,            ///< parent[field key] = value; as an array element, the bare value
    structure,        ///< parent[type key] = {field key: value, ...}
    merged,           ///< parent[field key] = value, for every field
    described,        ///< parent[text of the first field] = value of the second
    type_definition,  ///< describes another type, for the rest of the buffer
    nested,           ///< the payload is a whole buffer, printed under that buffer's key
    container,        ///< a container type: parent[key][id] = {...}
    buffer,  ///< magic of a buffer; key: the root key, empty if libkdd takes no such buffer
    opaque,  ///< libkdd has no description: parent["Type_0x..."] = list of bytes
};

/// One record, container or buffer type.
struct Type {
    std::uint32_t id;
    std::string_view name;  ///< XNU's
    /// libkdd's key. Several types may share one; arrays of theirs are joined.
    std::string_view key;
    Shape shape;
    /// In order of offset. Known for some opaque types too.
    std::span<const Field> fields{};
};

/// All types, by ascending id: the one description of what kcdata items hold. Taken from XNU's
/// kcdata.h and libkdd's kcdtypes.c; the items that make up the format itself (arrays, container
/// begin and end, BUFFER_END) are not in it.
std::span<const Type> schema();

/// The type `id`, or nullptr: unknown.
const Type* find_type(std::uint32_t id);

}  // namespace kcdata
