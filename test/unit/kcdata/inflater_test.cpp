#include "kcdata/inflater.hpp"

#include <zlib.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

#include "test/unit/kcdata/bytes.hpp"

using namespace kcdata;

namespace {

using Buffer = std::vector<std::byte>;

/// A zlib stream made by zlib itself, with XNU's parameters or its defaults.
Buffer deflated(std::span<const std::byte> plain, int level = 1, int window_bits = 12,
                int mem_level = 3) {
    z_stream stream{};
    REQUIRE(deflateInit2(&stream, level, Z_DEFLATED, window_bits, mem_level, Z_DEFAULT_STRATEGY) ==
            Z_OK);
    Buffer out(deflateBound(&stream, plain.size()));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(plain.data()));
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

Bytes& described(Bytes& bytes, const char* name, std::uint64_t value) {
    return bytes.header(3, 48, 0x88)
        .text(name)
        .fill(32 - std::char_traits<char>::length(name), 0)
        .u64(value)
        .fill(8, 0);
}

struct Head {
    std::uint64_t type = 1;
    std::uint64_t total_out = 0;
    std::uint64_t total_in = 0;
    std::uint32_t magic = 0x59a25807;
};

/// A compressed buffer, laid out by hand.
Buffer compressed(const Buffer& stream, const Head& head) {
    Bytes bytes;
    bytes.header(0x434f4d50, 0, 0x80);
    described(bytes, "kcd_c_type", head.type);
    described(bytes, "kcd_c_totalout", head.total_out);
    described(bytes, "kcd_c_totalin", head.total_in);
    bytes.header(head.magic, 0, 0x80);
    for (const std::byte byte : stream)
        bytes.u8(std::to_integer<std::uint8_t>(byte));
    bytes.header(0xf19158ed, 0, 0);
    return bytes;
}

Buffer sound(const Buffer& plain) {
    const Buffer stream = deflated(plain);
    return compressed(stream, {.total_out = stream.size(), .total_in = plain.size()});
}

/// Bytes that compress about as records do.
Buffer some_items(std::size_t size) {
    std::mt19937 random(size == 0 ? 1u : static_cast<unsigned>(size));
    Buffer plain(size);
    for (std::size_t index = 0; index < size; ++index)
        plain[index] = static_cast<std::byte>(index % 16 < 12 ? index / 64 : random() % 256);
    return plain;
}

struct Outcome {
    CompressionError head = CompressionError::none;
    CompressionError stream = CompressionError::none;
    Buffer bytes{};
};

/// All that can be inflated, in pieces of `piece` bytes.
Outcome inflated(const Buffer& buffer, std::size_t piece = 4096,
                 std::uint64_t limit = std::uint64_t{1} << 24,
                 std::size_t memory_size = Inflater::memory_size) {
    // The bytes in memory of their own size: a read past their end shows under ASan.
    Outcome outcome;
    CompressedHead head;
    outcome.head = read_compressed_head(buffer, head);
    std::vector<std::byte> memory(memory_size);
    Inflater inflater(head, memory, limit);
    Buffer out(piece);
    for (std::size_t size = piece; size == piece;) {
        size = inflater.read(out);
        outcome.bytes.insert(outcome.bytes.end(), out.begin(),
                             out.begin() + static_cast<std::ptrdiff_t>(size));
    }
    outcome.stream = inflater.error();
    CHECK(inflater.total() == outcome.bytes.size());
    return outcome;
}

}  // namespace

TEST_CASE("the head tells the inner BEGIN, both lengths, the stream and what follows it") {
    const Buffer plain = some_items(320);
    const Buffer stream = deflated(plain);
    Buffer buffer = compressed(
        stream, {.total_out = stream.size(), .total_in = plain.size(), .magic = 0xde17a59a});
    buffer.resize(buffer.size() + 7);  // What stands behind BUFFER_END is none of ours.
    CompressedHead head;
    REQUIRE(read_compressed_head(buffer, head) == CompressionError::none);
    CHECK(head.finished());
    CHECK(head.inner_begin.type == 0xde17a59a);
    CHECK(head.inner_begin.size == 0);
    CHECK(head.inner_begin.flags == 0x80);
    CHECK(head.total_in == 320);
    CHECK(head.total_out == stream.size());
    CHECK(head.stream.data() == buffer.data() + 224);
    CHECK(head.stream.size() == stream.size());
    CHECK(head.end_offset == 224 + stream.size() + 16);
}

TEST_CASE("any stream of XNU's parameters or others inflates, in pieces of any size") {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{16}, std::size_t{4096}, std::size_t{200'000}}) {
        const Buffer plain = some_items(size);
        for (const int window_bits : {9, 12, 15}) {
            for (const int level : {1, 6, 9}) {
                const Buffer stream = deflated(plain, level, window_bits, level == 1 ? 3 : 9);
                const Buffer buffer =
                    compressed(stream, {.total_out = stream.size(), .total_in = size});
                for (const std::size_t piece :
                     {std::size_t{1}, std::size_t{17}, std::size_t{16}, std::size_t{1} << 20}) {
                    if (piece == 1 && size > 5000)
                        continue;
                    const Outcome outcome = inflated(buffer, piece);
                    CHECK(outcome.head == CompressionError::none);
                    CHECK(outcome.stream == CompressionError::none);
                    CHECK((outcome.bytes == plain));
                }
            }
        }
    }
}

TEST_CASE("a head that is none is refused by name") {
    const Buffer plain = some_items(64);
    const Buffer stream = deflated(plain);
    const Head good{.total_out = stream.size(), .total_in = plain.size()};
    CompressedHead head;
    const auto error_of = [&](const Buffer& buffer) { return read_compressed_head(buffer, head); };

    CHECK(error_of({}) == CompressionError::not_compressed);
    CHECK(error_of(Bytes().header(0x59a25807, 0, 0x80).header(0xf19158ed, 0, 0)) ==
          CompressionError::not_compressed);
    Head other = good;
    for (const std::uint64_t type : {std::uint64_t{0}, std::uint64_t{2}}) {
        other.type = type;
        CHECK(error_of(compressed(stream, other)) == CompressionError::unknown_compression);
    }
    for (const std::uint32_t magic : {0x434f4d50u, 0xf19158edu, 0u}) {
        other = good;
        other.magic = magic;
        CHECK(error_of(compressed(stream, other)) == CompressionError::bad_inner_begin);
    }
    // Cut off anywhere in the head.
    const Buffer whole = compressed(stream, good);
    for (std::size_t size = 16; size < 224; ++size)
        CHECK(error_of(Buffer(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))) ==
              CompressionError::bad_head);
    // Another name, another type, another order.
    for (const std::size_t at : {std::size_t{16}, std::size_t{32}, std::size_t{80 + 16 + 6}}) {
        Buffer bad = whole;
        bad[at] ^= std::byte{1};
        CHECK(error_of(bad) == CompressionError::bad_head);
    }
}

TEST_CASE("totals that were never patched are told, and the stream is read to where it goes") {
    const Buffer plain = some_items(4096);
    Buffer buffer = compressed(deflated(plain), {});
    Outcome outcome = inflated(buffer);
    CHECK(outcome.head == CompressionError::unfinished);
    CHECK(outcome.stream == CompressionError::none);
    CHECK((outcome.bytes == plain));

    // As a writer leaves it that did not get to its end: zeros behind what it wrote.
    buffer.resize(224 + 500);
    buffer.insert(buffer.end(), 1000, std::byte{0});
    outcome = inflated(buffer);
    CHECK(outcome.head == CompressionError::unfinished);
    CHECK(outcome.stream != CompressionError::none);
    CHECK(!outcome.bytes.empty());

    outcome = inflated(compressed(deflated(plain), {}), 64, 1000);
    CHECK(outcome.stream == CompressionError::too_large);
    CHECK(outcome.bytes.size() == 1000);
}

TEST_CASE("a buffer cut off anywhere gives the first bytes and says that it is cut off") {
    const Buffer plain = some_items(4096);
    const Buffer whole = sound(plain);
    std::size_t most = 0;
    for (std::size_t size = 224; size < whole.size(); ++size) {
        const Outcome outcome =
            inflated(Buffer(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
        REQUIRE(outcome.bytes.size() <= plain.size());
        CHECK(std::equal(outcome.bytes.begin(), outcome.bytes.end(), plain.begin()));
        CHECK(outcome.bytes.size() >= most);
        most = outcome.bytes.size();
        if (size < whole.size() - 16) {
            CHECK(outcome.head == CompressionError::truncated_stream);
            CHECK(outcome.stream == CompressionError::truncated_stream);
        } else {
            CHECK(outcome.head == CompressionError::missing_end);
            CHECK(outcome.stream == CompressionError::none);
        }
    }
    CHECK(most == plain.size());
}

TEST_CASE("lengths that lie are refused by name, and no more comes out than declared") {
    const Buffer plain = some_items(4096);
    const Buffer stream = deflated(plain);
    for (const std::uint64_t total_in : {std::uint64_t{0}, std::uint64_t{16}, std::uint64_t{4095},
                                         std::uint64_t{4097}, std::uint64_t{1} << 20}) {
        const Outcome outcome =
            inflated(compressed(stream, {.total_out = stream.size(), .total_in = total_in}), 256);
        CHECK(outcome.head == CompressionError::none);
        CHECK(outcome.stream == CompressionError::wrong_totalin);
        CHECK(outcome.bytes.size() == std::min<std::uint64_t>(total_in, plain.size()));
    }
    // More than there is of the stream: its end is inside, and not BUFFER_END behind it.
    Buffer longer = compressed(stream, {.total_out = stream.size() + 8, .total_in = 4096});
    longer.insert(longer.end(), 8, std::byte{0});
    Outcome outcome = inflated(longer);
    CHECK(outcome.head == CompressionError::missing_end);
    CHECK(outcome.stream == CompressionError::wrong_totalout);
    CHECK((outcome.bytes == plain));
    // The same where nothing is behind the stream at all.
    longer = compressed(stream, {.total_out = stream.size() + 8, .total_in = 4096});
    longer.resize(224 + stream.size());
    outcome = inflated(longer);
    CHECK(outcome.head == CompressionError::truncated_stream);
    CHECK(outcome.stream == CompressionError::wrong_totalout);
    CHECK((outcome.bytes == plain));
    // Less: the stream does not end in what is its own.
    outcome = inflated(compressed(stream, {.total_out = stream.size() - 1, .total_in = 4096}));
    CHECK(outcome.head == CompressionError::missing_end);
    CHECK(outcome.stream == CompressionError::truncated_stream);
}

TEST_CASE("a bomb is refused before anything comes out, or at the limit") {
    const Buffer zeros(1 << 22);
    const Buffer stream = deflated(zeros, 9, 15, 9);
    REQUIRE(stream.size() < 8192);
    Outcome outcome = inflated(
        compressed(stream, {.total_out = stream.size(), .total_in = zeros.size()}), 4096, 1 << 20);
    CHECK(outcome.stream == CompressionError::too_large);
    CHECK(outcome.bytes.empty());
    outcome = inflated(compressed(stream, {.total_out = stream.size(), .total_in = 1 << 20}), 4096,
                       1 << 20);
    CHECK(outcome.stream == CompressionError::wrong_totalin);
    CHECK(outcome.bytes.size() == 1 << 20);
}

TEST_CASE("damage of a stream is told, unless it changes nothing of what comes out") {
    const Buffer plain = some_items(2048);
    const Buffer whole = sound(plain);
    std::size_t damaged = 0;
    for (std::size_t at = 224; at < whole.size() - 16; ++at) {
        Buffer bad = whole;
        bad[at] ^= std::byte{0x10};
        const Outcome outcome = inflated(bad);
        CHECK((outcome.stream != CompressionError::none || outcome.bytes == plain));
        CHECK(outcome.bytes.size() <= plain.size());
        damaged += outcome.stream != CompressionError::none;
    }
    // All but bits the format leaves unused.
    CHECK(damaged + 8 >= whole.size() - 16 - 224);
}

TEST_CASE("too little memory is an error, and what is given is enough") {
    const Buffer plain = some_items(100'000);
    const Buffer stream = deflated(plain, 9, 15, 9);
    const Buffer buffer =
        compressed(stream, {.total_out = stream.size(), .total_in = plain.size()});
    CHECK(inflated(buffer, 4096, 1 << 20, 0).stream == CompressionError::insufficient_memory);
    CHECK(inflated(buffer, 4096, 1 << 20, 16 * 1024).stream ==
          CompressionError::insufficient_memory);
    const Outcome outcome = inflated(buffer, 4096, 1 << 20);
    CHECK(outcome.stream == CompressionError::none);
    CHECK((outcome.bytes == plain));
}
