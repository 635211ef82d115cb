#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "kcdata/reader.hpp"
#include "kcdata/types.hpp"

/// Bytes of the payload that are the same whenever and by whoever a collection of one and the same
/// world was made; behind them an item tells of the collection.
inline std::size_t comparable_size(const kcdata::Item& item) {
    using namespace kcdata;
    switch (item.kind == ItemKind::array ? item.element_type : item.type) {
        case KCDATA_TYPE_MACH_ABSOLUTE_TIME:
        case KCDATA_TYPE_USECS_SINCE_EPOCH:
        case STACKSHOT_KCTYPE_STACKSHOT_DURATION:
        case STACKSHOT_KCTYPE_LATENCY_INFO:
        case STACKSHOT_KCTYPE_LATENCY_INFO_CPU:
            return 0;
        case STACKSHOT_KCTYPE_LATENCY_INFO_TASK:
        case STACKSHOT_KCTYPE_LATENCY_INFO_THREAD:
            return sizeof(std::uint64_t);  // whose they are
        default:
            return item.payload.size();
    }
}

/// The bytes of `buffer`, headers and padding included, without what tells of the collection; none
/// if it is not valid kcdata.
inline std::vector<std::byte> comparable(std::span<const std::byte> buffer) {
    std::vector<std::byte> bytes;
    kcdata::Reader reader(buffer);
    for (kcdata::Item item; reader.next(item);) {
        kcdata::ItemHeader header;
        std::memcpy(&header, buffer.data() + item.offset, sizeof(header));
        const bool whole = comparable_size(item) == item.payload.size();
        // The latencies of CPUs are as many as CPUs took part.
        if (!whole && comparable_size(item) == 0)
            continue;
        const auto part = buffer.subspan(
            item.offset, sizeof(header) + (whole ? header.size : comparable_size(item)));
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
    if (reader.error() != kcdata::ReadError::none)
        bytes.clear();
    return bytes;
}
