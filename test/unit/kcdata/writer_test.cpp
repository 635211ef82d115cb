#include "kcdata/writer.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

#include "kcdata/reader.hpp"
#include "kcdata/types.hpp"
#include "test/unit/kcdata/bytes.hpp"

using namespace kcdata;

namespace {

/// A buffer that was used before: whatever the writer does not write shows.
class DirtyBuffer {
  public:
    explicit DirtyBuffer(std::size_t size) : bytes_(size, std::byte{0xa5}) {}
    std::span<std::byte> span() { return bytes_; }
    std::vector<std::byte> first(std::size_t count) const {
        return {bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(count)};
    }
    const std::vector<std::byte>& all() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

std::vector<std::byte> counted(std::size_t size) {
    std::vector<std::byte> result(size);
    for (std::size_t index = 0; index < size; ++index)
        result[index] = static_cast<std::byte>(index + 1);
    return result;
}

/// Hands out dirty chunks of a fixed size as long as there are any.
class Chunks final : public Extender {
  public:
    Chunks(std::size_t size, std::size_t count) : size_(size), left_(count) {}

    std::span<std::byte> next_chunk(std::size_t used, std::size_t needed) override {
        used_.push_back(used);
        needed_.push_back(needed);
        if (left_ == 0)
            return {};
        --left_;
        chunks_.emplace_back(std::max(size_, needed), std::byte{0xa5});
        return chunks_.back();
    }

    std::vector<std::vector<std::byte>> chunks_;
    std::vector<std::size_t> used_;
    std::vector<std::size_t> needed_;

  private:
    std::size_t size_;
    std::size_t left_;
};

}  // namespace

TEST_CASE("a 20-byte payload takes 48 bytes and its flags say that 12 of them are padding") {
    DirtyBuffer buffer(64);
    Writer writer(buffer.span());
    REQUIRE(writer.append(0x905, counted(20)) == KERN_SUCCESS);
    Bytes expected;
    expected.header(0x905, 32, 0x8c);
    for (std::uint8_t value = 1; value <= 20; ++value)
        expected.u8(value);
    expected.fill(12, 0);
    CHECK(writer.used() == 48);
    CHECK(buffer.first(48) == expected.get());
}

TEST_CASE("a whole stackshot has the bytes the format asks for") {
    DirtyBuffer buffer(512);
    Writer writer(buffer.span());
    REQUIRE(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
    REQUIRE(writer.append_uint32_with_description("stackshot_in_pid", 7) == KERN_SUCCESS);
    REQUIRE(writer.append_uint64_with_description("stackshot_in_flags", 0x123456789abcdef0) ==
            KERN_SUCCESS);
    REQUIRE(writer.container_begin(STACKSHOT_KCCONTAINER_TASK, 0x1122334455667788) == KERN_SUCCESS);
    const std::array<std::uint64_t, 3> frames = {10, 11, 12};
    REQUIRE(writer.append_array(STACKSHOT_KCTYPE_KERN_STACKLR64,
                                std::span<const std::uint64_t>(frames)) == KERN_SUCCESS);
    REQUIRE(writer.append_value(KCDATA_TYPE_MACH_ABSOLUTE_TIME, std::uint64_t{99}) == KERN_SUCCESS);
    REQUIRE(writer.container_end(0x1122334455667788) == KERN_SUCCESS);
    REQUIRE(writer.end() == KERN_SUCCESS);

    Bytes expected;
    expected.header(0x59a25807, 0, 0x80);
    expected.header(2, 48, 0x8c).text("stackshot_in_pid").fill(16, 0).u32(7).fill(12, 0);
    expected.header(3, 48, 0x88).text("stackshot_in_flags").fill(14, 0).u64(0x123456789abcdef0);
    expected.fill(8, 0);
    expected.header(0x13, 16, 0x1122334455667788).u32(0x903).fill(12, 0);
    expected.header(0x28, 32, 0x0000'0914'0000'0003).u64(10).u64(11).u64(12).fill(8, 0);
    expected.header(0x33, 16, 0x88).u64(99).fill(8, 0);
    expected.header(0x14, 0, 0x1122334455667788);
    expected.header(0xf19158ed, 0, 0);
    CHECK(writer.used() == expected.get().size());
    CHECK(buffer.first(writer.used()) == expected.get());
}

TEST_CASE("payloads of every size are padded to 16 with zeros, in a fresh buffer and in a chunk") {
    for (std::size_t size = 0; size <= 64; ++size) {
        const std::size_t padded = (size + 15) / 16 * 16;
        Bytes expected;
        expected.header(0x90f, static_cast<std::uint32_t>(padded), 0x80 | (padded - size));
        for (std::size_t index = 0; index < size; ++index)
            expected.u8(static_cast<std::uint8_t>(index + 1));
        expected.fill(padded - size, 0);

        DirtyBuffer buffer(128);
        Writer direct(buffer.span());
        REQUIRE(direct.append(0x90f, counted(size)) == KERN_SUCCESS);
        CHECK(buffer.first(direct.used()) == expected.get());

        Chunks chunks(256, 1);
        DirtyBuffer small(16);
        Writer extended(small.span(), &chunks);
        REQUIRE(extended.append(0x90f, counted(size)) == KERN_SUCCESS);
        REQUIRE(chunks.chunks_.size() == 1);
        CHECK(std::equal(expected.get().begin(), expected.get().end(), chunks.chunks_[0].begin()));
    }
}

TEST_CASE("reserved payloads are zero whatever the buffer held before") {
    DirtyBuffer buffer(512);
    Writer writer(buffer.span());
    auto plain = writer.reserve(0x906, 128);
    REQUIRE(plain.ok());
    CHECK(plain.value().size() == 128);
    auto array = writer.reserve_array(0x914, 8, 5);
    REQUIRE(array.ok());
    CHECK(array.value().size() == 40);
    const auto is_zero = [](std::byte value) { return value == std::byte{0}; };
    CHECK(std::all_of(plain.value().begin(), plain.value().end(), is_zero));
    CHECK(std::all_of(array.value().begin(), array.value().end(), is_zero));
}

TEST_CASE("an item fits exactly when room for BUFFER_END is left behind it") {
    DirtyBuffer fits(16 + 32 + 16);
    Writer writer(fits.span());
    REQUIRE(writer.append(0x905, counted(20)) == KERN_SUCCESS);
    CHECK(writer.append(0x905, {}) == KERN_INSUFFICIENT_BUFFER_SIZE);
    REQUIRE(writer.end() == KERN_SUCCESS);
    CHECK(writer.used() == 64);

    DirtyBuffer short_by_one(16 + 32 + 15);
    Writer refused(short_by_one.span());
    CHECK(refused.append(0x905, counted(20)) == KERN_INSUFFICIENT_BUFFER_SIZE);
    CHECK(refused.used() == 0);
}

TEST_CASE("an append that fails changes nothing") {
    DirtyBuffer buffer(80);
    Chunks none(0, 0);
    for (Extender* extender : {static_cast<Extender*>(nullptr), static_cast<Extender*>(&none)}) {
        Writer writer(buffer.span(), extender);
        REQUIRE(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
        REQUIRE(writer.append(0x905, counted(10)) == KERN_SUCCESS);
        const std::vector<std::byte> before = buffer.all();
        const std::size_t used = writer.used();

        CHECK(writer.append(0x905, counted(40)) == KERN_INSUFFICIENT_BUFFER_SIZE);
        CHECK(writer.reserve(0x905, 40).error() == KERN_INSUFFICIENT_BUFFER_SIZE);
        CHECK(writer.reserve_array(0x914, 8, 5).error() == KERN_INSUFFICIENT_BUFFER_SIZE);
        CHECK(writer.container_begin(0x903, 1) == KERN_INSUFFICIENT_BUFFER_SIZE);
        CHECK(writer.append_uint32_with_description("name", 1) == KERN_INSUFFICIENT_BUFFER_SIZE);
        CHECK(writer.append_items(counted(64)) == KERN_INSUFFICIENT_BUFFER_SIZE);
        CHECK(writer.undo_container_begin() == KERN_INVALID_ARGUMENT);
        CHECK(writer.used() == used);
        CHECK(buffer.all() == before);

        REQUIRE(writer.append(0x905, {}) == KERN_SUCCESS);
        REQUIRE(writer.end() == KERN_SUCCESS);
    }
}

TEST_CASE("sizes that overflow are refused before anything is asked for") {
    Chunks chunks(64, 8);
    DirtyBuffer buffer(64);
    Writer writer(buffer.span(), &chunks);
    CHECK(writer.reserve(1, SIZE_MAX).error() == KERN_INVALID_ARGUMENT);
    CHECK(writer.reserve(1, std::size_t{UINT32_MAX} - 15).error() == KERN_INVALID_ARGUMENT);
    CHECK(writer.reserve_array(1, 8, SIZE_MAX / 8 + 2).error() == KERN_INVALID_ARGUMENT);
    CHECK(writer.reserve_array(1, 0x10000, 0x10000).error() == KERN_INVALID_ARGUMENT);
    CHECK(writer.reserve_array(1, 0, 1).error() == KERN_INVALID_ARGUMENT);
    CHECK(writer.reserve_array(1, 1, std::size_t{UINT32_MAX} + 1).error() == KERN_INVALID_ARGUMENT);
    CHECK(chunks.chunks_.empty());
    CHECK(writer.used() == 0);
}

TEST_CASE("a description has at most 31 characters") {
    DirtyBuffer buffer(256);
    Writer writer(buffer.span());
    CHECK(writer.append_uint64_with_description("0123456789012345678901234567890", 1) ==
          KERN_SUCCESS);
    const std::size_t used = writer.used();
    CHECK(writer.append_uint64_with_description("01234567890123456789012345678901", 1) ==
          KERN_INVALID_ARGUMENT);
    CHECK(writer.append_uint32_with_description(nullptr, 1) == KERN_INVALID_ARGUMENT);
    CHECK(writer.used() == used);
}

TEST_CASE("an empty array is an item of size 0") {
    DirtyBuffer buffer(64);
    Writer writer(buffer.span());
    REQUIRE(writer.append_array(0x914, std::span<const std::uint64_t>()) == KERN_SUCCESS);
    CHECK(buffer.first(16) == Bytes().header(0x20, 0, 0x0000'0914'0000'0000).get());
}

TEST_CASE("elements written ahead where an array will be are those of the array") {
    for (std::size_t size = 0; size < 400; size += 8) {
        INFO("a buffer of " << size);
        DirtyBuffer buffer(size);
        Writer writer(buffer.span());
        const auto room = writer.array_room<std::uint64_t>();
        for (std::size_t n = 0; n < room.size(); ++n)
            room[n] = 1000 + n;
        const auto placed = writer.place_array<std::uint64_t>(0x914, room.size());
        if (room.empty())
            continue;
        REQUIRE(placed.ok());
        CHECK(placed.value().data() == room.data());
        CHECK(placed.value().size() == room.size());
        CHECK(writer.end() == KERN_SUCCESS);
        // Not one word less than there is: END, header and padding are at most 48 bytes.
        CHECK(room.size() * 8 + 48 + 8 > size);
        for (std::size_t n = 0; n < room.size(); ++n)
            CHECK(placed.value()[n] == 1000 + n);
    }
}

TEST_CASE("a container begin can be taken back only directly after it") {
    DirtyBuffer buffer(256);
    Writer writer(buffer.span());
    CHECK(writer.undo_container_begin() == KERN_INVALID_ARGUMENT);
    REQUIRE(writer.append(0x905, counted(4)) == KERN_SUCCESS);
    const std::size_t used = writer.used();
    REQUIRE(writer.container_begin(0x904, 5) == KERN_SUCCESS);
    REQUIRE(writer.undo_container_begin() == KERN_SUCCESS);
    CHECK(writer.used() == used);
    CHECK(writer.undo_container_begin() == KERN_INVALID_ARGUMENT);

    REQUIRE(writer.container_begin(0x904, 5) == KERN_SUCCESS);
    REQUIRE(writer.append(0x905, {}) == KERN_SUCCESS);
    CHECK(writer.undo_container_begin() == KERN_INVALID_ARGUMENT);
}

TEST_CASE("an item that does not fit goes whole into the next chunk, and the old one stays") {
    Chunks chunks(128, 3);
    DirtyBuffer first(128);
    Writer writer(first.span(), &chunks);
    REQUIRE(writer.append(0x905, counted(64)) == KERN_SUCCESS);
    const std::vector<std::byte> kept = first.first(80);
    auto moved = writer.reserve(0x906, 40);
    REQUIRE(moved.ok());
    CHECK(chunks.used_ == std::vector<std::size_t>{80});
    CHECK(chunks.needed_ == std::vector<std::size_t>{16 + 48 + 16});
    CHECK(first.first(80) == kept);
    CHECK(writer.buffer().data() == chunks.chunks_[0].data());
    CHECK(moved.value().data() == chunks.chunks_[0].data() + 16);
    CHECK(writer.used() == 64);

    SECTION("an item larger than a chunk gets one of its size") {
        REQUIRE(writer.append(0x90e, counted(1000)) == KERN_SUCCESS);
        CHECK(chunks.chunks_[1].size() == 16 + 1008 + 16);
        CHECK(writer.used() == 1024);
    }
    SECTION("a container begin in a new chunk can be taken back") {
        REQUIRE(writer.append(0x906, counted(32)) == KERN_SUCCESS);
        REQUIRE(writer.container_begin(0x904, 1) == KERN_SUCCESS);
        REQUIRE(writer.undo_container_begin() == KERN_SUCCESS);
        CHECK(writer.used() == 0);
    }
}

TEST_CASE("chunks joined without their tails read back as one buffer") {
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::vector<std::byte>> payloads;
        Chunks chunks(std::uniform_int_distribution<std::size_t>(48, 300)(random), SIZE_MAX);
        Writer part({}, &chunks);
        for (int index = 0; index < 20; ++index) {
            payloads.push_back(counted(std::uniform_int_distribution<std::size_t>(0, 90)(random)));
            REQUIRE(part.append(0x1000 + static_cast<std::uint32_t>(index), payloads.back()) ==
                    KERN_SUCCESS);
        }
        std::vector<std::size_t> used = chunks.used_;
        used.push_back(part.used());

        DirtyBuffer whole(8192);
        Writer writer(whole.span());
        REQUIRE(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
        for (std::size_t index = 0; index < chunks.chunks_.size(); ++index)
            REQUIRE(writer.append_items(std::span(chunks.chunks_[index]).first(used[index + 1])) ==
                    KERN_SUCCESS);
        REQUIRE(writer.end() == KERN_SUCCESS);

        Reader reader(whole.span().first(writer.used()));
        Item item;
        REQUIRE(reader.next(item));
        for (std::size_t index = 0; index < payloads.size(); ++index) {
            REQUIRE(reader.next(item));
            CHECK(item.type == 0x1000 + index);
            CHECK(std::equal(item.payload.begin(), item.payload.end(), payloads[index].begin(),
                             payloads[index].end()));
        }
        REQUIRE(reader.next(item));
        CHECK(item.kind == ItemKind::end);
        CHECK(reader.offset() == writer.used());
    }
}

TEST_CASE("only whole 16-byte units can be copied as items") {
    DirtyBuffer buffer(128);
    Writer writer(buffer.span());
    CHECK(writer.append_items(counted(24)) == KERN_INVALID_ARGUMENT);
    CHECK(writer.append_items({}) == KERN_SUCCESS);
    CHECK(writer.used() == 0);
}

TEST_CASE("nothing follows BUFFER_END") {
    Chunks chunks(128, 4);
    DirtyBuffer buffer(128);
    Writer writer(buffer.span(), &chunks);
    REQUIRE(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
    REQUIRE(writer.end() == KERN_SUCCESS);
    CHECK(writer.used() == 32);
    CHECK(writer.append(1, {}) == KERN_INSUFFICIENT_BUFFER_SIZE);
    CHECK(writer.end() == KERN_INSUFFICIENT_BUFFER_SIZE);
    CHECK(chunks.chunks_.empty());
}

TEST_CASE("a writer without a buffer refuses everything") {
    Writer writer;
    CHECK(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_INSUFFICIENT_BUFFER_SIZE);
    CHECK(writer.append(1, {}) == KERN_INSUFFICIENT_BUFFER_SIZE);
    CHECK(writer.end() == KERN_INSUFFICIENT_BUFFER_SIZE);
}

TEST_CASE("the end allocator takes aligned memory from the end, and leaves the items alone") {
    DirtyBuffer buffer(1024);
    Writer writer(buffer.span());
    REQUIRE(writer.append(0x905, counted(20)) == KERN_SUCCESS);
    const std::vector<std::byte> before = buffer.all();

    const auto first = writer.allocate_end(100);
    REQUIRE(first.ok());
    CHECK(first.value().data() == buffer.span().data() + 1024 - 104);
    CHECK(first.value().size() == 104);
    CHECK(writer.buffer().size() == 1024 - 104);
    // A quarter of what is left then, not of all.
    CHECK(writer.allocate_end(230).error() == KERN_INSUFFICIENT_BUFFER_SIZE);
    const auto second = writer.allocate_end(1);
    REQUIRE(second.ok());
    CHECK(second.value().data() == first.value().data() - 8);
    CHECK(writer.allocate_end(0).ok());
    CHECK(buffer.all() == before);

    // What was taken is not written to any more.
    while (writer.append(0x905, counted(16)) == KERN_SUCCESS) {
    }
    REQUIRE(writer.end() == KERN_SUCCESS);
    CHECK(std::equal(buffer.all().begin() + 1024 - 112, buffer.all().end(),
                     before.begin() + 1024 - 112));
    CHECK(writer.allocate_end(8).error() == KERN_INSUFFICIENT_BUFFER_SIZE);
}

TEST_CASE("the end allocator takes the misalignment of the end along") {
    DirtyBuffer buffer(1029);
    Writer writer(buffer.span());
    const auto taken = writer.allocate_end(16);
    REQUIRE(taken.ok());
    CHECK(reinterpret_cast<std::uintptr_t>(taken.value().data()) % 8 == 0);
    CHECK(taken.value().size() == 16 + 5);
    CHECK(writer.buffer().size() == 1008);
}

TEST_CASE("the end allocator refuses a quarter of the buffer, what items need, and chains") {
    DirtyBuffer buffer(1024);
    CHECK(Writer(buffer.span()).allocate_end(256).error() == KERN_INSUFFICIENT_BUFFER_SIZE);
    CHECK(Writer(buffer.span()).allocate_end(249).error() == KERN_INSUFFICIENT_BUFFER_SIZE);
    CHECK(Writer(buffer.span()).allocate_end(248).ok());
    CHECK(Writer(buffer.span()).allocate_end(SIZE_MAX).error() == KERN_INSUFFICIENT_BUFFER_SIZE);
    CHECK(Writer().allocate_end(0).error() == KERN_INSUFFICIENT_BUFFER_SIZE);

    // 1024 - 16 - 832 - 16 = 160 bytes are free: the quarter rule alone would let 200 overlap.
    Writer full(buffer.span());
    REQUIRE(full.append(0x905, counted(832)) == KERN_SUCCESS);
    CHECK(full.allocate_end(200).error() == KERN_INSUFFICIENT_BUFFER_SIZE);
    CHECK(full.allocate_end(160).ok());
    CHECK(full.append(0x905, {}) == KERN_INSUFFICIENT_BUFFER_SIZE);
    REQUIRE(full.end() == KERN_SUCCESS);

    Chunks chunks(64, 8);
    CHECK(Writer(buffer.span(), &chunks).allocate_end(8).error() == KERN_INVALID_ARGUMENT);
}

TEST_CASE("the estimate of a buffer is enough for any items, and does not overflow") {
    CHECK(estimate_required_buffer_size(0, 0).value() == 32);
    CHECK(estimate_required_buffer_size(3, 100).value() == 3 * 31 + 100 + 32);
    CHECK(estimate_required_buffer_size(SIZE_MAX / 31 + 1, 0).error() == KERN_INVALID_ARGUMENT);
    CHECK(estimate_required_buffer_size(SIZE_MAX / 31, 0).error() == KERN_INVALID_ARGUMENT);
    CHECK(estimate_required_buffer_size(0, SIZE_MAX - 31).error() == KERN_INVALID_ARGUMENT);
    CHECK(estimate_required_buffer_size(0, SIZE_MAX - 32).value() == SIZE_MAX);

    for (std::size_t size = 0; size <= 32; ++size) {
        DirtyBuffer buffer(estimate_required_buffer_size(10, 10 * size).value());
        Writer writer(buffer.span());
        REQUIRE(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT) == KERN_SUCCESS);
        for (int item = 0; item < 10; ++item)
            CHECK(writer.append(0x905, counted(size)) == KERN_SUCCESS);
        CHECK(writer.end() == KERN_SUCCESS);
    }
}

TEST_CASE("in a buffer of any size: what does not fit is refused, and nothing outside is written") {
    for (std::size_t size = 0; size <= 600; ++size) {
        DirtyBuffer memory(size + 128);
        Writer writer(memory.span().subspan(64, size));
        std::size_t expected = 0;
        for (std::size_t item = 0; item < 20; ++item) {
            const std::size_t payload = item * 7 % 40;
            const std::size_t needed = 16 + (payload + 15) / 16 * 16;
            const bool fits = expected + needed + 16 <= size;
            CHECK(writer.append(0x905, counted(payload)) ==
                  (fits ? KERN_SUCCESS : KERN_INSUFFICIENT_BUFFER_SIZE));
            expected += fits ? needed : 0;
            CHECK(writer.used() == expected);
        }
        CHECK(writer.end() == (size >= 16 ? KERN_SUCCESS : KERN_INSUFFICIENT_BUFFER_SIZE));
        const auto untouched = [](std::byte byte) { return byte == std::byte{0xa5}; };
        CHECK(std::all_of(memory.all().begin(), memory.all().begin() + 64, untouched));
        CHECK(std::all_of(memory.all().end() - 64, memory.all().end(), untouched));
    }
}

TEST_CASE("an item of size 0 is a boolean: its header is all there is") {
    DirtyBuffer buffer(64);
    Writer writer(buffer.span());
    REQUIRE(writer.append(0x905, {}) == KERN_SUCCESS);
    auto reserved = writer.reserve(0x906, 0);
    REQUIRE(reserved.ok());
    CHECK(reserved.value().empty());
    CHECK(buffer.first(32) == Bytes().header(0x905, 0, 0x80).header(0x906, 0, 0x80).get());
}
