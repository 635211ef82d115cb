#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "kcdata/reader.hpp"
#include "kcdata/schema.hpp"

using namespace kcdata;

namespace {

void check(bool holds) {
    if (!holds)
        std::abort();
}

}  // namespace

/// Any bytes: every item lies inside the buffer, the walk moves forward and ends.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto buffer = std::as_bytes(std::span(data, size));
    Reader reader(buffer);
    Item item;
    std::size_t end = 0;
    std::size_t sum = 0;
    do {
        while (reader.next(item)) {
            const std::size_t payload_offset = item.offset + sizeof(ItemHeader);
            check(payload_offset <= size);
            // Ends that are not there stand where their absence showed.
            if (item.kind != ItemKind::container_end) {
                check(item.offset >= end);
                end = payload_offset;
            }
            if (!item.payload.empty()) {
                check(item.payload.data() == buffer.data() + payload_offset);
                check(item.payload.size() <= size - payload_offset);
            }
            for (std::byte byte : item.payload)
                sum += std::to_integer<std::size_t>(byte);
            if (item.kind == ItemKind::array)
                check(item.element_size * item.element_count == item.payload.size());
            check(reader.depth() <= Reader::max_nesting);
            if (const Type* type = find_type(item.type))
                check(type->id == item.type);
        }
    } while (reader.resume());
    check(reader.offset() <= size);
    check((reader.error() == ReadError::none) == (item.kind == ItemKind::end && end != 0));
    // Keeps the reads.
    check(sum != SIZE_MAX);
    return 0;
}
