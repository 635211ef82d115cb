#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "kcdata/inflater.hpp"

/// The plain buffer of a compressed one that is sound to its last byte.
inline std::vector<std::byte> inflated(std::span<const std::byte> buffer) {
    using namespace kcdata;
    CompressedHead head;
    REQUIRE(read_compressed_head(buffer, head) == CompressionError::none);
    CHECK(head.end_offset == buffer.size());
    std::vector<std::byte> plain(2 * sizeof(ItemHeader) + head.total_in);
    std::memcpy(plain.data(), &head.inner_begin, sizeof(ItemHeader));
    std::vector<std::byte> memory(Inflater::memory_size);
    Inflater inflater(head, memory);
    CHECK(inflater.read(std::span(plain).subspan(sizeof(ItemHeader))) == head.total_in);
    CHECK(inflater.error() == CompressionError::none);
    const ItemHeader end{KCDATA_TYPE_BUFFER_END, 0, 0};
    std::memcpy(plain.data() + plain.size() - sizeof(end), &end, sizeof(end));
    return plain;
}
