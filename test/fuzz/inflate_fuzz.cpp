#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "kcdata/inflater.hpp"
#include "kcdata/writer.hpp"

using namespace kcdata;

namespace {

void check(bool holds) {
    if (!holds)
        std::abort();
}

constexpr std::uint64_t limit = 1 << 16;

struct Outcome {
    std::vector<std::byte> bytes{};
    CompressionError error = CompressionError::none;
};

Outcome inflate_in_pieces(const CompressedHead& head, std::size_t piece) {
    std::vector<std::byte> memory(Inflater::memory_size);
    Inflater inflater(head, memory, limit);
    Outcome outcome;
    std::vector<std::byte> out(piece);
    for (std::size_t size = piece; size == piece;) {
        size = inflater.read(out);
        outcome.bytes.insert(outcome.bytes.end(), out.begin(),
                             out.begin() + static_cast<std::ptrdiff_t>(size));
        check(outcome.bytes.size() <= limit);
    }
    check(inflater.read(out) == 0);
    check(inflater.total() == outcome.bytes.size());
    outcome.error = inflater.error();
    return outcome;
}

/// A head that says what it is told to, in front of `stream`.
std::vector<std::byte> with_head(std::uint64_t total_out, std::uint64_t total_in,
                                 std::span<const std::byte> stream) {
    std::vector<std::byte> buffer(compressed_head_size + sizeof(ItemHeader));
    Writer writer(buffer);
    check(writer.begin(KCDATA_BUFFER_BEGIN_COMPRESSED) == KERN_SUCCESS);
    check(writer.append_uint64_with_description(kcd_c_type, KCDCT_ZLIB) == KERN_SUCCESS);
    check(writer.append_uint64_with_description(kcd_c_totalout, total_out) == KERN_SUCCESS);
    check(writer.append_uint64_with_description(kcd_c_totalin, total_in) == KERN_SUCCESS);
    check(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
    buffer.resize(writer.used());
    buffer.insert(buffer.end(), stream.begin(), stream.end());
    return buffer;
}

}  // namespace

/// A byte that says in what pieces to read; a byte whose low bit says whether any bytes follow as a
/// whole buffer, or kcd_c_totalout, kcd_c_totalin and any bytes as the stream. What comes out does
/// not depend on the pieces, is never more than declared or allowed, and is called sound only if it
/// is all that was declared.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2)
        return 0;
    const std::size_t piece = std::size_t{1} + data[0];
    const bool raw = (data[1] & 1) != 0;
    auto rest = std::as_bytes(std::span(data, size)).subspan(2);
    std::vector<std::byte> buffer;
    if (raw) {
        buffer.assign(rest.begin(), rest.end());
    } else {
        std::uint64_t totals[2];
        if (rest.size() < sizeof(totals))
            return 0;
        std::memcpy(totals, rest.data(), sizeof(totals));
        buffer = with_head(totals[0], totals[1], rest.subspan(sizeof(totals)));
    }

    CompressedHead head;
    const CompressionError error = read_compressed_head(buffer, head);
    if (!has_stream(error))
        return 0;
    check(head.end_offset <= buffer.size());
    check(head.finished() == (error != CompressionError::unfinished));
    check(head.stream.empty() ||
          (head.stream.data() >= buffer.data() &&
           head.stream.data() + head.stream.size() <= buffer.data() + buffer.size()));

    const Outcome parts = inflate_in_pieces(head, piece);
    const Outcome whole = inflate_in_pieces(head, limit + 1);
    check(parts.bytes == whole.bytes);
    check(parts.error == whole.error);
    if (head.finished()) {
        check(whole.bytes.size() <= head.total_in);
        if (whole.error == CompressionError::none)
            check(whole.bytes.size() == head.total_in && head.stream.size() == head.total_out);
        if (head.total_in > limit)
            check(whole.error == CompressionError::too_large && whole.bytes.empty());
    }
    return 0;
}
