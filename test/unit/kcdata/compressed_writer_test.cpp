#include "kcdata/compressed_writer.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

#include "kcdata/types.hpp"
#include "test/unit/kcdata/bytes.hpp"

using namespace kcdata;

namespace {

using Buffer = std::vector<std::byte>;

/// A buffer that was used before, between two guards that nobody may write to.
class GuardedBuffer {
  public:
    explicit GuardedBuffer(std::size_t size) : bytes_(size + 2 * guard, std::byte{0xa5}) {}
    std::span<std::byte> span() { return std::span(bytes_).subspan(guard).first(size()); }
    std::size_t size() const { return bytes_.size() - 2 * guard; }
    Buffer first(std::size_t count) const {
        const auto begin = bytes_.begin() + guard;
        return {begin, begin + static_cast<std::ptrdiff_t>(count)};
    }
    bool guards_hold() const {
        const auto untouched = [](std::byte byte) { return byte == std::byte{0xa5}; };
        return std::all_of(bytes_.begin(), bytes_.begin() + guard, untouched) &&
               std::all_of(bytes_.end() - guard, bytes_.end(), untouched);
    }

  private:
    static constexpr std::ptrdiff_t guard = 64;
    Buffer bytes_;
};

/// A CompressedWriter with memory of its own.
struct Compressor {
    explicit Compressor(std::span<std::byte> buffer,
                        const ZlibParameters& parameters = default_zlib_parameters)
        : memory(CompressedWriter::memory_size(parameters)), writer(buffer, memory, parameters) {}

    Buffer memory;
    CompressedWriter writer;
};

std::uint64_t u64_at(const Buffer& bytes, std::size_t offset) {
    std::uint64_t value = 0;
    for (std::size_t index = 8; index-- > 0;)
        value = value << 8 | std::to_integer<std::uint64_t>(bytes[offset + index]);
    return value;
}

/// What zlib itself makes of the whole stream; fails unless all of `stream` is one.
Buffer uncompressed(std::span<const std::byte> stream, std::size_t size) {
    Buffer out(size + 1);
    auto out_size = static_cast<uLongf>(out.size());
    auto in_size = static_cast<uLong>(stream.size());
    REQUIRE(uncompress2(reinterpret_cast<Bytef*>(out.data()), &out_size,
                        reinterpret_cast<const Bytef*>(stream.data()), &in_size) == Z_OK);
    CHECK(in_size == stream.size());
    out.resize(out_size);
    return out;
}

/// What zlib makes of the beginning of a stream.
Buffer uncompressed_part(std::span<const std::byte> stream) {
    z_stream z{};
    REQUIRE(inflateInit(&z) == Z_OK);
    Buffer out(1 << 20);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stream.data()));
    z.avail_in = static_cast<uInt>(stream.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    const int status = inflate(&z, Z_SYNC_FLUSH);
    CHECK((status == Z_OK || status == Z_BUF_ERROR));
    out.resize(z.total_out);
    inflateEnd(&z);
    return out;
}

/// Lays by hand what stands in front of the stream.
Buffer head_of(std::uint32_t magic, std::uint64_t total_out, std::uint64_t total_in) {
    Bytes bytes;
    bytes.header(0x434f4d50, 0, 0x80);
    bytes.header(3, 48, 0x88).text("kcd_c_type").fill(22, 0).u64(1).fill(8, 0);
    bytes.header(3, 48, 0x88).text("kcd_c_totalout").fill(18, 0).u64(total_out).fill(8, 0);
    bytes.header(3, 48, 0x88).text("kcd_c_totalin").fill(19, 0).u64(total_in).fill(8, 0);
    bytes.header(magic, 0, 0x80);
    return bytes;
}

/// Takes a finished buffer apart by the format's offsets, checks all but the stream, and returns
/// the inflated items.
Buffer items_of(const Buffer& buffer, std::uint32_t magic = 0x59a25807) {
    REQUIRE(buffer.size() >= 224 + 16);
    const std::uint64_t total_out = u64_at(buffer, 128);
    const std::uint64_t total_in = u64_at(buffer, 192);
    REQUIRE(buffer.size() == 224 + total_out + 16);
    CHECK(Buffer(buffer.begin(), buffer.begin() + 224) == head_of(magic, total_out, total_in));
    CHECK(Buffer(buffer.end() - 16, buffer.end()) == Bytes().header(0xf19158ed, 0, 0).get());
    Buffer items = uncompressed(std::span(buffer).subspan(224, total_out), total_in);
    CHECK(items.size() == total_in);
    return items;
}

/// Items as a capture has them: similar ones, and some that do not compress at all.
std::vector<Buffer> some_items(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Buffer> items;
    for (std::size_t index = 0; index < count; ++index) {
        Buffer payload(random() % 200);
        const bool noise = random() % 3 == 0;
        for (std::size_t at = 0; at < payload.size(); ++at)
            payload[at] = static_cast<std::byte>(noise ? random() : at / 8);
        Buffer item(16 + (payload.size() + 15) / 16 * 16 + 16);
        Writer writer(item);
        REQUIRE(writer.append(STACKSHOT_KCTYPE_THREAD_NAME, payload) == KERN_SUCCESS);
        item.resize(writer.used());
        items.push_back(item);
    }
    return items;
}

Buffer joined(const std::vector<Buffer>& items) {
    Buffer all;
    for (const Buffer& item : items)
        all.insert(all.end(), item.begin(), item.end());
    return all;
}

}  // namespace

TEST_CASE("a compressed buffer has the bytes the format asks for, but for what zlib chooses") {
    GuardedBuffer buffer(1024);
    Compressor compressor(buffer.span(), xnu_zlib_parameters);
    CompressedWriter& writer = compressor.writer;
    REQUIRE(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
    // The totals are 0 until the end.
    CHECK(buffer.first(224) == head_of(0x59a25807, 0, 0));
    CHECK(writer.used() == 224);

    const Buffer first = Bytes().header(0x33, 16, 0x88).u64(99).fill(8, 0);
    const Buffer second = Bytes().header(0x905, 0, 0x80);
    REQUIRE(writer.append_items(first) == KERN_SUCCESS);
    REQUIRE(writer.append_items(second) == KERN_SUCCESS);
    REQUIRE(writer.append_items({}) == KERN_SUCCESS);
    CHECK(writer.uncompressed() == 48);
    REQUIRE(writer.end() == KERN_SUCCESS);

    const Buffer whole = buffer.first(writer.used());
    // XNU's window of 4 KiB at its fastest level (RFC 1950: CMF and FLG).
    CHECK(whole[224] == std::byte{0x48});
    CHECK(whole[225] == std::byte{0x0d});
    CHECK(items_of(whole) == joined({first, second}));
    // Nothing is left of what was in the buffer before.
    const Buffer all = buffer.first(buffer.size());
    CHECK(std::all_of(all.begin() + static_cast<std::ptrdiff_t>(writer.used()), all.end(),
                      [](std::byte byte) { return byte == std::byte{0}; }));
    CHECK(buffer.guards_hold());
}

TEST_CASE("the inner BEGIN is the one of the plain buffer, an empty stream is a stream") {
    GuardedBuffer buffer(512);
    Compressor compressor(buffer.span());
    REQUIRE(compressor.writer.begin(KCDATA_BUFFER_BEGIN_CRASHINFO) == KERN_SUCCESS);
    REQUIRE(compressor.writer.end() == KERN_SUCCESS);
    CHECK(items_of(buffer.first(compressor.writer.used()), 0xdeadf157).empty());

    Compressor flags(buffer.span());
    REQUIRE(flags.writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT, 0) == KERN_SUCCESS);
    CHECK(Buffer(buffer.span().begin() + 208, buffer.span().begin() + 224) ==
          Bytes().header(0x59a25807, 0, 0).get());
}

TEST_CASE("compressed and plain writers hold the same items, whatever the parameters") {
    const std::vector<Buffer> items = some_items(500, 1);
    Buffer plain(joined(items).size() + 48);
    Writer plain_writer(plain);
    REQUIRE(plain_writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
    for (const Buffer& item : items)
        REQUIRE(plain_writer.append_items(item) == KERN_SUCCESS);
    REQUIRE(plain_writer.end() == KERN_SUCCESS);

    for (const int level : {0, 1, 6, 9}) {
        for (const int window_bits : {9, 12, 15}) {
            for (const int mem_level : {1, 3, 8, 9}) {
                for (const bool flush_each : {false, true}) {
                    GuardedBuffer buffer(1 << 17);
                    Compressor compressor(buffer.span(),
                                          {level, window_bits, mem_level, flush_each});
                    REQUIRE(compressor.writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
                    for (const Buffer& item : items)
                        REQUIRE(compressor.writer.append_items(item) == KERN_SUCCESS);
                    REQUIRE(compressor.writer.end() == KERN_SUCCESS);
                    const Buffer inside = items_of(buffer.first(compressor.writer.used()));
                    CHECK(std::equal(
                        inside.begin(), inside.end(), plain.begin() + 16,
                        plain.begin() + static_cast<std::ptrdiff_t>(plain_writer.used() - 16)));
                    CHECK(buffer.guards_hold());
                }
            }
        }
    }
}

TEST_CASE("with a flush for each append, all that was appended can be inflated at any time") {
    const std::vector<Buffer> items = some_items(50, 2);
    GuardedBuffer buffer(1 << 16);
    Compressor compressor(buffer.span(), xnu_zlib_parameters);
    REQUIRE(compressor.writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
    Buffer appended;
    for (const Buffer& item : items) {
        REQUIRE(compressor.writer.append_items(item) == KERN_SUCCESS);
        appended.insert(appended.end(), item.begin(), item.end());
        const Buffer stream = buffer.first(compressor.writer.used());
        CHECK((uncompressed_part(std::span(stream).subspan(224)) == appended));
    }
}

TEST_CASE("a window's items are compressed when it is closed, as they are then") {
    for (const ZlibParameters& parameters : {default_zlib_parameters, xnu_zlib_parameters}) {
        GuardedBuffer buffer(2048);
        Compressor compressor(buffer.span(), parameters);
        CompressedWriter& writer = compressor.writer;
        REQUIRE(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
        const Buffer before = some_items(1, 3)[0];
        REQUIRE(writer.append_items(before) == KERN_SUCCESS);

        Writer& window = writer.open_window();
        auto payload = window.reserve(STACKSHOT_KCTYPE_STACKSHOT_DURATION, 24);
        REQUIRE(payload.ok());
        CHECK(reinterpret_cast<std::uintptr_t>(payload.value().data()) % 16 == 0);
        REQUIRE(window.append_uint64_with_description("stackshot_out_flags", 5) == KERN_SUCCESS);
        payload.value()[8] = std::byte{7};
        REQUIRE(writer.close_window() == KERN_SUCCESS);
        CHECK(window.append(1, {}) == KERN_INSUFFICIENT_BUFFER_SIZE);
        REQUIRE(writer.append_items(before) == KERN_SUCCESS);
        REQUIRE(writer.end() == KERN_SUCCESS);

        Bytes expected;
        expected.header(STACKSHOT_KCTYPE_STACKSHOT_DURATION, 32, 0x88);
        expected.fill(8, 0).u8(7).fill(15, 0).fill(8, 0);
        expected.header(3, 48, 0x88).text("stackshot_out_flags").fill(13, 0).u64(5).fill(8, 0);
        CHECK(items_of(buffer.first(writer.used())) == joined({before, expected, before}));
        CHECK(buffer.guards_hold());
    }
}

TEST_CASE("an empty window changes nothing") {
    for (const bool with_window : {false, true}) {
        GuardedBuffer buffer(1024);
        Compressor compressor(buffer.span(), xnu_zlib_parameters);
        REQUIRE(compressor.writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
        REQUIRE(compressor.writer.append_items(some_items(1, 4)[0]) == KERN_SUCCESS);
        static Buffer without;
        if (with_window) {
            compressor.writer.open_window();
            REQUIRE(compressor.writer.close_window() == KERN_SUCCESS);
        }
        REQUIRE(compressor.writer.end() == KERN_SUCCESS);
        if (!with_window)
            without = buffer.first(compressor.writer.used());
        else
            CHECK(buffer.first(compressor.writer.used()) == without);
    }
}

TEST_CASE("a window whose items cannot be compressed behind it is lost, the rest is not") {
    GuardedBuffer buffer(1024);
    Compressor compressor(buffer.span());
    CompressedWriter& writer = compressor.writer;
    REQUIRE(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
    const Buffer before = some_items(1, 5)[0];
    REQUIRE(writer.append_items(before) == KERN_SUCCESS);
    REQUIRE(writer.open_window().reserve(0x90e, 500).ok());
    CHECK(writer.close_window() == KERN_INSUFFICIENT_BUFFER_SIZE);
    REQUIRE(writer.append_items(before) == KERN_SUCCESS);
    REQUIRE(writer.end() == KERN_SUCCESS);
    CHECK(items_of(buffer.first(writer.used())) == joined({before, before}));
    CHECK(buffer.guards_hold());
}

TEST_CASE("what comes at the wrong time is refused") {
    GuardedBuffer buffer(1024);
    const Buffer item = some_items(1, 6)[0];
    Compressor compressor(buffer.span());
    CompressedWriter& writer = compressor.writer;
    CHECK(writer.append_items(item) == KERN_INVALID_ARGUMENT);
    CHECK(writer.close_window() == KERN_INVALID_ARGUMENT);
    CHECK(writer.end() == KERN_INVALID_ARGUMENT);
    CHECK(writer.open_window().append(1, {}) == KERN_INSUFFICIENT_BUFFER_SIZE);

    REQUIRE(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
    CHECK(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_INVALID_ARGUMENT);
    writer.open_window();
    CHECK(writer.append_items(item) == KERN_INVALID_ARGUMENT);
    CHECK(writer.end() == KERN_INVALID_ARGUMENT);
    REQUIRE(writer.close_window() == KERN_SUCCESS);
    CHECK(writer.close_window() == KERN_INVALID_ARGUMENT);
    REQUIRE(writer.end() == KERN_SUCCESS);
    CHECK(writer.append_items(item) == KERN_INVALID_ARGUMENT);
    CHECK(writer.open_window().append(1, {}) == KERN_INSUFFICIENT_BUFFER_SIZE);
    CHECK(writer.end() == KERN_INVALID_ARGUMENT);
}

TEST_CASE("memory of the size computed beforehand is enough, and too little is an error") {
    GuardedBuffer buffer(1 << 16);
    const std::vector<Buffer> items = some_items(200, 7);
    for (int window_bits = 8; window_bits <= 15; ++window_bits) {
        for (int mem_level = 1; mem_level <= 9; ++mem_level) {
            const ZlibParameters parameters{6, window_bits, mem_level, false};
            INFO("window " << window_bits << ", memory " << mem_level);
            GuardedBuffer memory(CompressedWriter::memory_size(parameters));
            CompressedWriter writer(buffer.span(), memory.span(), parameters);
            REQUIRE(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
            for (const Buffer& item : items)
                REQUIRE(writer.append_items(item) == KERN_SUCCESS);
            REQUIRE(writer.end() == KERN_SUCCESS);
            CHECK((items_of(buffer.first(writer.used())) == joined(items)));
            CHECK(memory.guards_hold());

            CompressedWriter starved(
                buffer.span(), memory.span().first(std::size_t{1} << (mem_level + 9)), parameters);
            CHECK(starved.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_RESOURCE_SHORTAGE);
            CHECK(starved.append_items(items[0]) == KERN_INVALID_ARGUMENT);
            CHECK(memory.guards_hold());
        }
    }
    Compressor unknown(buffer.span(), {.level = 10});
    CHECK(unknown.writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_INVALID_ARGUMENT);
}

TEST_CASE("in a buffer of any size: what does not fit is refused, what was taken is there") {
    const std::vector<Buffer> items = some_items(30, 8);
    const Buffer window_item = some_items(1, 9)[0];
    for (const ZlibParameters& parameters :
         {default_zlib_parameters, xnu_zlib_parameters, ZlibParameters{0, 15, 8, false},
          ZlibParameters{9, 9, 1, false}}) {
        std::size_t most_taken = 0;
        bool all_fit = false;
        for (std::size_t size = 0; !all_fit; size += size < 400 ? 1 : 7) {
            REQUIRE(size < 100'000);
            GuardedBuffer buffer(size);
            Compressor compressor(buffer.span(), parameters);
            CompressedWriter& writer = compressor.writer;
            const kern_return begun = writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT);
            if (begun != KERN_SUCCESS) {
                CHECK(begun == KERN_INSUFFICIENT_BUFFER_SIZE);
                CHECK(size < 224 + 16 + 64);
                CHECK(writer.end() == KERN_INVALID_ARGUMENT);
                REQUIRE(buffer.guards_hold());
                continue;
            }
            Buffer taken;
            std::size_t refused = 0;
            // Goes on after a refusal: a smaller item may fit.
            for (std::size_t index = 0; index < items.size(); ++index) {
                const std::size_t used = writer.used();
                kern_return error = KERN_SUCCESS;
                const Buffer* item = &items[index];
                if (index % 10 == 9) {
                    item = &window_item;
                    error = writer.open_window().append_items(*item);
                    const kern_return closed = writer.close_window();
                    if (error == KERN_SUCCESS)
                        error = closed;
                } else {
                    error = writer.append_items(*item);
                }
                if (error == KERN_SUCCESS) {
                    taken.insert(taken.end(), item->begin(), item->end());
                    continue;
                }
                ++refused;
                REQUIRE(error == KERN_INSUFFICIENT_BUFFER_SIZE);
                REQUIRE(writer.used() >= used);
            }
            REQUIRE(writer.end() == KERN_SUCCESS);
            REQUIRE(writer.used() <= size);
            REQUIRE((items_of(buffer.first(writer.used())) == taken));
            REQUIRE(buffer.guards_hold());
            most_taken = std::max(most_taken, taken.size());
            all_fit = refused == 0;
        }
        CHECK(most_taken > 0);
    }
}

TEST_CASE("a full buffer holds about what its compressed size allows, not its plain size") {
    // The bound zlib gives for what it holds back is far above what comes out.
    std::vector<Buffer> items;
    for (int round = 0; round < 100; ++round)
        items.push_back(Bytes().header(0x909, 64, 0x80).fill(64, 0x41));
    const std::size_t plain = joined(items).size();
    GuardedBuffer buffer(1400);
    REQUIRE(buffer.size() < plain / 4);
    Compressor compressor(buffer.span());
    REQUIRE(compressor.writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
    for (const Buffer& item : items)
        REQUIRE(compressor.writer.append_items(item) == KERN_SUCCESS);
    REQUIRE(compressor.writer.end() == KERN_SUCCESS);
    CHECK((items_of(buffer.first(compressor.writer.used())) == joined(items)));
}
