#include "kcdata/compression.hpp"

#include <algorithm>
#include <cstring>

#include "kcdata/reader.hpp"

namespace kcdata {

namespace {

/// Takes the next item as the u64 described by `name`.
bool read_described(Reader& reader, Item& item, const char* name, std::uint64_t& value) {
    if (!reader.next(item) || item.type != KCDATA_TYPE_UINT64_DESC ||
        item.payload.size() != description_size + sizeof(value))
        return false;
    // The name's NUL is compared too.
    if (std::memcmp(item.payload.data(), name, std::strlen(name) + 1) != 0)
        return false;
    std::memcpy(&value, item.payload.data() + description_size, sizeof(value));
    return true;
}

}  // namespace

const char* compression_error_text(CompressionError error) {
    switch (error) {
        case CompressionError::none:
            return "no error";
        case CompressionError::not_compressed:
            return "no compressed kcdata buffer begins here";
        case CompressionError::bad_head:
            return "the type and the lengths of the compressed data are missing or damaged";
        case CompressionError::unknown_compression:
            return "the data is compressed in an unknown way (kcd_c_type is not 1, zlib)";
        case CompressionError::bad_inner_begin:
            return "no BEGIN of a plain buffer stands in front of the compressed data";
        case CompressionError::unfinished:
            return "the lengths of the compressed data were never filled in: its writer did not "
                   "get to the end";
        case CompressionError::truncated_stream:
            return "the compressed data is cut off";
        case CompressionError::missing_end:
            return "no BUFFER_END follows the compressed data";
        case CompressionError::too_large:
            return "the data is larger than allowed once inflated";
        case CompressionError::bad_stream:
            return "the compressed data is damaged";
        case CompressionError::wrong_totalout:
            return "the compressed data is shorter than its head says (kcd_c_totalout)";
        case CompressionError::wrong_totalin:
            return "the inflated data has another length than its head says (kcd_c_totalin)";
        case CompressionError::insufficient_memory:
            return "too little memory to inflate the data";
    }
    return "unknown error";
}

CompressionError read_compressed_head(std::span<const std::byte> buffer, CompressedHead& head) {
    head = {};
    Reader reader(buffer);
    Item item;
    if (!reader.next(item) || item.type != KCDATA_BUFFER_BEGIN_COMPRESSED)
        return CompressionError::not_compressed;
    std::uint64_t type = 0;
    if (!read_described(reader, item, kcd_c_type, type) ||
        !read_described(reader, item, kcd_c_totalout, head.total_out) ||
        !read_described(reader, item, kcd_c_totalin, head.total_in))
        return CompressionError::bad_head;
    if (type != KCDCT_ZLIB)
        return CompressionError::unknown_compression;

    // The inner BEGIN is read by hand: what follows it is no payload, whatever its size says.
    const ItemHeader last = load_header(buffer.data() + item.offset);
    std::span<const std::byte> rest = buffer.subspan(item.offset + sizeof(last) + last.size);
    if (rest.size() < sizeof(head.inner_begin))
        return CompressionError::bad_head;
    head.inner_begin = load_header(rest.data());
    if (!is_begin_magic(head.inner_begin.type) ||
        head.inner_begin.type == KCDATA_BUFFER_BEGIN_COMPRESSED)
        return CompressionError::bad_inner_begin;
    head.inner_begin.size = 0;
    rest = rest.subspan(sizeof(head.inner_begin));

    head.stream = rest;
    head.end_offset = buffer.size();
    if (!head.finished())
        return CompressionError::unfinished;
    if (head.total_out > rest.size())
        return CompressionError::truncated_stream;
    head.stream = rest.first(static_cast<std::size_t>(head.total_out));
    rest = rest.subspan(head.stream.size());
    head.end_offset = buffer.size() - rest.size();

    if (rest.size() < sizeof(ItemHeader) || load_header(rest.data()).type != KCDATA_TYPE_BUFFER_END)
        return CompressionError::missing_end;
    head.end_offset += sizeof(ItemHeader);
    return CompressionError::none;
}

}  // namespace kcdata
