#pragma once

#include <cstddef>
#include <cstdint>

#include "kcdata/format.hpp"
#include "kcdata/types.hpp"

namespace kcdata {

// What an item's header says about its payload.

constexpr bool is_array(std::uint32_t type) {
    return type == KCDATA_TYPE_ARRAY ||
           (type >= KCDATA_TYPE_ARRAY_PAD0 && type <= KCDATA_TYPE_ARRAY_PADf);
}

/// Element sizes of KCDATA_TYPE_ARRAY, whose items do not tell; 0: no such array exists. The list
/// is closed: today's arrays carry their padding in the type.
constexpr std::size_t legacy_element_size(std::uint32_t element_type) {
    switch (element_type) {
        case KCDATA_TYPE_LIBRARY_LOADINFO:
            return 20;
        case KCDATA_TYPE_LIBRARY_LOADINFO64:
            return 24;
        case STACKSHOT_KCTYPE_KERN_STACKFRAME:
        case STACKSHOT_KCTYPE_USER_STACKFRAME:
            return 8;
        case STACKSHOT_KCTYPE_KERN_STACKFRAME64:
        case STACKSHOT_KCTYPE_USER_STACKFRAME64:
            return 16;
        case STACKSHOT_KCTYPE_DONATING_PIDS:
            return 4;
        case STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT:
            return 48;
        case TASK_CRASHINFO_CRASHED_THREADID:
            return 8;
        default:
            return 0;
    }
}

/// Payload bytes of an item that is no array and no container: two record types were once written
/// rounded up without saying so; all others subtract the padding their flags name.
constexpr std::size_t plain_payload_size(const ItemHeader& header) {
    constexpr std::uint64_t padding_bits =
        KCDATA_FLAGS_STRUCT_PADDING_MASK | KCDATA_FLAGS_STRUCT_HAS_PADDING;
    if ((header.flags & padding_bits) == 0) {
        if (header.type == STACKSHOT_KCTYPE_THREAD_SNAPSHOT && header.size == 112)
            return 104;
        if (header.type == STACKSHOT_KCTYPE_SHAREDCACHE_LOADINFO && header.size == 32)
            return 24;
    }
    const std::size_t padding =
        static_cast<std::size_t>(header.flags & KCDATA_FLAGS_STRUCT_PADDING_MASK);
    return padding < header.size ? header.size - padding : 0;
}

/// The elements of an array item, one behind the other at the start of its data.
struct ArrayLayout {
    std::uint32_t element_type;
    std::size_t count;
    std::size_t element_size;  ///< 0 if there are none
    bool valid;                ///< count, size and padding do not contradict each other
};

/// The layout of an item whose type is_array(); if it is not valid, count and element_size are 0.
constexpr ArrayLayout array_layout(const ItemHeader& header) {
    const auto element_type = static_cast<std::uint32_t>(header.flags >> 32);
    const auto count = static_cast<std::uint32_t>(header.flags);
    const ArrayLayout invalid{element_type, 0, 0, false};
    if (count == 0)
        return {element_type, 0, 0, header.size == 0};
    if (header.type == KCDATA_TYPE_ARRAY) {
        const std::size_t element_size = legacy_element_size(element_type);
        if (element_size == 0 || count > header.size / element_size ||
            header.size % count >= alignment)
            return invalid;
        return {element_type, count, element_size, true};
    }
    const std::size_t padding = header.type - KCDATA_TYPE_ARRAY_PAD0;
    if (padding > header.size || count > header.size - padding ||
        (header.size - padding) % count != 0)
        return invalid;
    return {element_type, count, (header.size - padding) / count, true};
}

}  // namespace kcdata
