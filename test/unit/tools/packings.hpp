#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kcdata/compression.hpp"
#include "kcdata/format.hpp"

namespace tools_test {

/// Deflates all of `bytes`; `window_bits` as zlib takes them, which choose the wrapping.
inline std::vector<std::byte> deflated(std::span<const std::byte> bytes, int window_bits) {
    z_stream stream{};
    if (deflateInit2(&stream, 1, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        throw std::runtime_error("deflateInit2");
    std::vector<std::byte> out(deflateBound(&stream, bytes.size()));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    if (status != Z_STREAM_END)
        throw std::runtime_error("deflate");
    return out;
}

inline std::vector<std::byte> gzipped(std::span<const std::byte> bytes) {
    return deflated(bytes, 16 + MAX_WBITS);
}

inline std::vector<std::byte> base64(std::span<const std::byte> bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        for (std::size_t j = 0; j < 3; ++j)
            group = group << 8 |
                    (i + j < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + j]) : 0);
        for (std::size_t j = 0; j < 4; ++j)
            text += i + j > bytes.size() ? '=' : digits[group >> (18 - 6 * j) & 63];
        if (text.size() % 77 == 76)
            text += '\n';
    }
    const auto out = std::as_bytes(std::span(text));
    return {out.begin(), out.end()};
}

/// The compressed form of a plain buffer, put together byte by byte. `total_in`: what the head says
/// of the inflated size; 0 is the truth.
inline std::vector<std::byte> compressed(std::span<const std::byte> plain,
                                         std::uint64_t total_in = 0) {
    using namespace kcdata;
    std::vector<std::byte> out;
    const auto append = [&out](std::span<const std::byte> bytes) {
        out.insert(out.end(), bytes.begin(), bytes.end());
    };
    const auto header = [&append](std::uint32_t type, std::uint32_t size, std::uint64_t flags) {
        const ItemHeader item{type, size, flags};
        append(std::as_bytes(std::span(&item, 1)));
    };
    const auto number = [&](const char* name, std::uint64_t value) {
        std::byte payload[48] = {};
        std::memcpy(payload, name, std::strlen(name));
        std::memcpy(payload + description_size, &value, sizeof(value));
        header(KCDATA_TYPE_UINT64_DESC, sizeof(payload), 0x88);
        append(payload);
    };
    const auto items = plain.subspan(sizeof(ItemHeader), plain.size() - 2 * sizeof(ItemHeader));
    const auto stream = deflated(items, 12);
    header(KCDATA_BUFFER_BEGIN_COMPRESSED, 0, 0x80);
    number(kcd_c_type, KCDCT_ZLIB);
    number(kcd_c_totalout, stream.size());
    number(kcd_c_totalin, total_in != 0 ? total_in : items.size());
    append(plain.first(sizeof(ItemHeader)));
    append(stream);
    header(KCDATA_TYPE_BUFFER_END, 0, 0);
    return out;
}

}  // namespace tools_test
