#include "kcdata/reader.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kcdata/types.hpp"
#include "test/unit/kcdata/bytes.hpp"

using namespace kcdata;

namespace {

/// A buffer that begins as a stackshot does.
Bytes stackshot() {
    return Bytes().header(KCDATA_BUFFER_BEGIN_STACKSHOT, 0, 0x80);
}

/// Skips the BEGIN item.
Reader begun(const Bytes& bytes) {
    Reader reader(bytes.get());
    Item item;
    REQUIRE(reader.next(item));
    REQUIRE(item.kind == ItemKind::begin);
    return reader;
}

/// The one item of a buffer.
Item only_item(const Bytes& bytes) {
    Reader reader = begun(bytes);
    Item item;
    REQUIRE(reader.next(item));
    return item;
}

ReadError only_error(const Bytes& bytes) {
    Reader reader = begun(bytes);
    Item item;
    while (reader.next(item)) {
    }
    return reader.error();
}

}  // namespace

TEST_CASE("a buffer is read from BEGIN to BUFFER_END and not further") {
    Bytes bytes = stackshot();
    bytes.header(0x33, 16, 0x88).u64(5).u64(0).header(KCDATA_TYPE_BUFFER_END, 0, 0).text("rest");
    Reader reader(bytes.get());
    Item item;
    REQUIRE(reader.next(item));
    CHECK(item.kind == ItemKind::begin);
    CHECK(item.type == KCDATA_BUFFER_BEGIN_STACKSHOT);
    CHECK(item.offset == 0);
    REQUIRE(reader.next(item));
    CHECK(item.kind == ItemKind::plain);
    CHECK(item.type == 0x33);
    CHECK(item.offset == 16);
    CHECK(item.payload.size() == 8);
    REQUIRE(reader.next(item));
    CHECK(item.kind == ItemKind::end);
    CHECK_FALSE(reader.next(item));
    CHECK(reader.error() == ReadError::none);
    CHECK(reader.offset() == 64);
}

TEST_CASE("every kind of buffer is known by its magic, and nothing else is one") {
    for (std::uint32_t magic : {0x59a25807u, 0xde17a59au, 0xdeadf157u, 0x53a20900u, 0x1e21c09fu,
                                0x434f4d50u, 0x46414e47u}) {
        Item item;
        Bytes bytes = Bytes().header(magic, 0, 0);
        Reader reader(bytes.get());
        CHECK(reader.next(item));
    }
    for (std::uint32_t other : {0u, 0x0758a259u, 0x905u, 0xf19158edu}) {
        Item item;
        Bytes bytes = Bytes().header(other, 0, 0);
        Reader reader(bytes.get());
        CHECK_FALSE(reader.next(item));
        CHECK(reader.error() == ReadError::bad_magic);
    }
    Item item;
    Reader empty{{}};
    CHECK_FALSE(empty.next(item));
    CHECK(empty.error() == ReadError::bad_magic);
}

TEST_CASE("the same magic again is skipped, another one is an unknown item") {
    Bytes bytes = stackshot();
    bytes.header(KCDATA_BUFFER_BEGIN_STACKSHOT, 0, 0x80);
    bytes.header(KCDATA_BUFFER_BEGIN_CRASHINFO, 0, 0);
    Reader reader = begun(bytes);
    Item item;
    REQUIRE(reader.next(item));
    CHECK(item.kind == ItemKind::begin);
    REQUIRE(reader.next(item));
    CHECK(item.kind == ItemKind::plain);
}

TEST_CASE("padding is taken off in all three generations of flags") {
    const auto length = [](std::uint32_t type, std::uint32_t size, std::uint64_t flags) {
        return only_item(stackshot().header(type, size, flags).fill(size, 0)).payload.size();
    };
    CHECK(length(0x905, 48, 0) == 48);
    CHECK(length(0x905, 48, 0xc) == 36);
    CHECK(length(0x905, 48, 0x8c) == 36);
    CHECK(length(0x905, 56, 0) == 56);
    CHECK(length(0x905, 4, 0xf) == 0);

    // thread_snapshot_v2 and dyld_uuid_info_64 from before there was a padding count.
    CHECK(length(0x906, 112, 0) == 104);
    CHECK(length(0x906, 112, 0x80) == 112);
    CHECK(length(0x906, 112, 0x8) == 104);
    CHECK(length(0x906, 128, 0) == 128);
    CHECK(length(0x908, 32, 0) == 24);
    CHECK(length(0x908, 32, 0x80) == 32);
    CHECK(length(0x908, 48, 0) == 48);
}

TEST_CASE("items need no alignment") {
    Bytes bytes = stackshot();
    bytes.header(0x905, 5, 0).text("12345").header(0x33, 8, 0x80).u64(77);
    Reader reader = begun(bytes);
    Item item;
    REQUIRE(reader.next(item));
    REQUIRE(reader.next(item));
    CHECK(item.offset == 37);
    std::uint64_t value = 0;
    REQUIRE(item.payload.size() == sizeof(value));
    std::memcpy(&value, item.payload.data(), sizeof(value));
    CHECK(value == 77);
}

TEST_CASE("an item must lie inside the data") {
    CHECK(only_error(stackshot()) == ReadError::missing_end);
    CHECK(only_error(stackshot().fill(15, 0)) == ReadError::truncated_header);
    CHECK(only_error(stackshot().header(0x905, 1, 0)) == ReadError::truncated_payload);
    CHECK(only_error(stackshot().header(0x905, UINT32_MAX, 0).fill(64, 0)) ==
          ReadError::truncated_payload);
    CHECK(only_error(stackshot().header(0x905, 16, 0).fill(16, 0)) == ReadError::missing_end);
}

TEST_CASE("an array's elements are those its type, size and count agree on") {
    const Item padded = only_item(stackshot().header(0x2c, 16, 0x0000'0907'0000'0001).fill(16, 1));
    CHECK(padded.kind == ItemKind::array);
    CHECK(padded.element_type == 0x907);
    CHECK(padded.element_count == 1);
    CHECK(padded.element_size == 4);
    CHECK(padded.payload.size() == 4);

    const Item odd = only_item(stackshot().header(0x22, 64, 0x0000'091d'0000'0002).fill(64, 1));
    CHECK(odd.element_size == 31);
    CHECK(odd.payload.size() == 62);

    const Item empty = only_item(stackshot().header(0x20, 0, 0x0000'0914'0000'0000));
    CHECK(empty.element_count == 0);
    CHECK(empty.payload.empty());
}

TEST_CASE("an array whose numbers contradict each other is refused, and the next item is read") {
    struct Case {
        std::uint32_t type;
        std::uint32_t size;
        std::uint64_t flags;
    };
    for (const Case& bad : {
             Case{0x28, 16, 0x0000'0914'0000'0000},  // elements are none, padding is some
             Case{0x20, 16, 0x0000'0914'0000'0003},  // 16 does not divide by 3
             Case{0x28, 4, 0x0000'0914'0000'0001},   // more padding than bytes
             Case{0x28, 16, 0x0000'0914'0000'0009},  // more elements than bytes
             Case{0x20, 16, 0x0000'0914'ffff'ffff},
             Case{0x11, 16, 0x0000'0914'0000'0002},  // no legacy array has such elements
             Case{0x11, 16, 0x0000'090b'0000'0002},  // two elements of 16 in 16 bytes
             Case{0x11, 16, 0x0000'0030'0000'0000},
             Case{0x11, 96, 0x0000'0907'0000'0014},  // 20 elements of 4 fit, but 96 % 20 is 16
         }) {
        INFO("type " << bad.type << " size " << bad.size << " flags " << bad.flags);
        Bytes bytes = stackshot();
        bytes.header(bad.type, bad.size, bad.flags).fill(bad.size, 0);
        bytes.header(0x33, 8, 0x80).u64(1);
        Reader reader = begun(bytes);
        Item item;
        REQUIRE_FALSE(reader.next(item));
        CHECK(reader.error() == ReadError::bad_array);
        CHECK(reader.offset() == 16);
        CHECK_FALSE(reader.next(item));
        REQUIRE(reader.resume());
        REQUIRE(reader.next(item));
        CHECK(item.type == 0x33);
    }
}

TEST_CASE("legacy arrays take their element size from a fixed list") {
    struct Case {
        std::uint64_t type;
        std::size_t element_size;
    };
    for (const Case& known :
         {Case{0x30, 20}, Case{0x31, 24}, Case{0x90a, 8}, Case{0x90b, 16}, Case{0x90c, 8},
          Case{0x90d, 16}, Case{0x907, 4}, Case{0x941, 48}, Case{0x81a, 8}}) {
        const auto size = static_cast<std::uint32_t>(known.element_size * 2 + 15) / 16 * 16;
        const Item item =
            only_item(stackshot().header(0x11, size, known.type << 32 | 2).fill(size, 0));
        CHECK(item.element_size == known.element_size);
        CHECK(item.payload.size() == 2 * known.element_size);
    }
}

TEST_CASE("a container ends with the id it began with") {
    Bytes bytes = stackshot();
    bytes.header(0x13, 16, 7).u32(0x903).fill(12, 0);
    bytes.header(0x13, 4, UINT64_MAX).u32(0x904);
    bytes.header(0x14, 0, UINT64_MAX);
    bytes.header(0x14, 4, 7).u32(0);
    bytes.header(KCDATA_TYPE_BUFFER_END, 0, 0);
    Reader reader = begun(bytes);
    Item item;
    REQUIRE(reader.next(item));
    CHECK(item.kind == ItemKind::container_begin);
    CHECK(item.container_type == 0x903);
    CHECK(item.container_id == 7);
    CHECK(reader.depth() == 1);
    REQUIRE(reader.next(item));
    CHECK(item.container_type == 0x904);
    CHECK(item.container_id == UINT64_MAX);
    CHECK(reader.depth() == 2);
    REQUIRE(reader.next(item));
    CHECK(item.kind == ItemKind::container_end);
    REQUIRE(reader.next(item));
    CHECK(reader.depth() == 0);
    REQUIRE(reader.next(item));
    CHECK(item.kind == ItemKind::end);
}

TEST_CASE("containers that do not nest are refused") {
    CHECK(only_error(stackshot().header(0x13, 3, 1).fill(3, 0)) == ReadError::bad_container_begin);
    CHECK(only_error(stackshot().header(0x13, 4, 1).u32(0x903).header(0x14, 0, 2)) ==
          ReadError::container_mismatch);
    CHECK(only_error(stackshot().header(0x13, 4, 1).u32(0x903).header(0xf19158ed, 0, 0)) ==
          ReadError::unclosed_container);

    Bytes deep = stackshot();
    for (std::uint64_t level = 0; level <= Reader::max_nesting; ++level)
        deep.header(0x13, 4, level).u32(0x903);
    CHECK(only_error(deep) == ReadError::nested_too_deep);
}

TEST_CASE("an end outside of any container can be passed over") {
    Bytes bytes = stackshot().header(0x14, 0, 2).header(0x33, 8, 0x80).u64(1);
    Reader reader = begun(bytes);
    Item item;
    CHECK_FALSE(reader.next(item));
    CHECK(reader.error() == ReadError::unopened_container);
    REQUIRE(reader.resume());
    REQUIRE(reader.next(item));
    CHECK(item.type == 0x33);
}

TEST_CASE("behind an end with the id of a container further out, those inside are ended first") {
    Bytes bytes = stackshot();
    for (std::uint64_t id : {1u, 2u, 3u})
        bytes.header(0x13, 4, id).u32(0x903);
    bytes.header(0x14, 0, 9).header(0x14, 0, 1).header(KCDATA_TYPE_BUFFER_END, 0, 0);
    Reader reader = begun(bytes);
    Item item;
    while (reader.next(item)) {
    }
    // 9 ends nothing at all.
    CHECK(reader.error() == ReadError::container_mismatch);
    CHECK(reader.number() == 4);
    REQUIRE(reader.resume());
    CHECK(reader.depth() == 3);
    REQUIRE_FALSE(reader.next(item));
    CHECK(reader.error() == ReadError::container_mismatch);
    REQUIRE(reader.resume());
    for (std::uint64_t id : {3u, 2u, 1u}) {
        REQUIRE(reader.next(item));
        CHECK(item.kind == ItemKind::container_end);
        CHECK(item.container_id == id);
        CHECK(reader.depth() == id - 1);
    }
    REQUIRE(reader.next(item));
    CHECK(item.kind == ItemKind::end);
    CHECK(reader.error() == ReadError::none);
}

TEST_CASE("BUFFER_END inside containers can end them") {
    Bytes bytes = stackshot();
    for (std::uint64_t id : {1u, 2u})
        bytes.header(0x13, 4, id).u32(0x903);
    bytes.header(KCDATA_TYPE_BUFFER_END, 0, 0);
    Reader reader = begun(bytes);
    Item item;
    while (reader.next(item)) {
    }
    CHECK(reader.error() == ReadError::unclosed_container);
    REQUIRE(reader.resume());
    std::vector<ItemKind> kinds;
    while (reader.next(item))
        kinds.push_back(item.kind);
    CHECK(kinds == std::vector{ItemKind::container_end, ItemKind::container_end, ItemKind::end});
    CHECK(reader.error() == ReadError::none);
    CHECK(reader.offset() == bytes.get().size());
}

TEST_CASE("behind an item of a wrong size, reading goes on where items make sense") {
    const auto damaged = [](std::uint32_t type) {
        Bytes bytes = stackshot();
        bytes.header(type, 0x7000'0000, 0x80).fill(48, 0x41);
        bytes.header(0x33, 16, 0x88).u64(5).u64(0);
        bytes.header(0x14, 0, 7).header(KCDATA_TYPE_BUFFER_END, 0, 0);
        return bytes;
    };
    Bytes bytes = damaged(0x905);
    Reader reader = begun(bytes);
    Item item;
    REQUIRE_FALSE(reader.next(item));
    CHECK(reader.error() == ReadError::truncated_payload);
    REQUIRE(reader.resume());
    CHECK(reader.following() == 80);
    REQUIRE(reader.next(item));
    CHECK(item.type == 0x33);
    CHECK(item.offset == 80);
    CHECK(item.number == 2);

    // Behind an odd size, at the next multiple of 16 from the start of the buffer.
    Bytes odd = stackshot();
    odd.header(0x910, 4, 0x8c).u32(4096).fill(12, 0xff);
    odd.header(0x33, 16, 0x88).u64(5).u64(0).header(KCDATA_TYPE_BUFFER_END, 0, 0);
    Reader third = begun(odd);
    REQUIRE(third.next(item));
    while (third.next(item)) {
    }
    REQUIRE(third.resume());
    CHECK(third.following() == 48);

    // Of a nested buffer, what follows would be items of another buffer.
    Bytes nested = damaged(0x38);
    Reader other = begun(nested);
    REQUIRE_FALSE(other.next(item));
    CHECK_FALSE(other.resume());
}

TEST_CASE("items are numbered from BEGIN on, and one passed can be read again") {
    Bytes bytes = stackshot();
    bytes.header(0x13, 4, 7).u32(0x903);
    bytes.header(0x33, 8, 0x80).u64(5);
    bytes.header(0x2c, 16, 0x0000'0907'0000'0001).fill(16, 1);
    bytes.header(0x14, 0, 7).header(KCDATA_TYPE_BUFFER_END, 0, 0);
    Reader reader = begun(bytes);
    const Reader start = reader;
    Item item;
    std::vector<Item> items;
    while (reader.next(item))
        items.push_back(item);
    REQUIRE(items.size() == 5);
    for (std::size_t i = 0; i < items.size(); ++i)
        CHECK(items[i].number == i + 1);
    for (const Item& each : {items[1], items[2]}) {
        const Item again = start.again(each.offset);
        CHECK(again.kind == each.kind);
        CHECK(again.type == each.type);
        CHECK(again.flags == each.flags);
        CHECK(again.payload.data() == each.payload.data());
        CHECK(again.payload.size() == each.payload.size());
        CHECK(again.element_size == each.element_size);
        CHECK(again.element_count == each.element_count);
    }
    Reader inside = start.inside(items[0].offset, items[0].number);
    CHECK(inside.depth() == 1);
    for (std::size_t i = 1; i < items.size(); ++i) {
        REQUIRE(inside.next(item));
        CHECK(item.offset == items[i].offset);
        CHECK(item.number == items[i].number);
    }
    CHECK(inside.depth() == 0);
}

TEST_CASE("errors that leave no place to go on end the walk") {
    Bytes bytes = stackshot().header(0x905, 1, 0);
    Reader reader = begun(bytes);
    Item item;
    CHECK_FALSE(reader.next(item));
    CHECK_FALSE(reader.resume());
    CHECK_FALSE(reader.next(item));
    CHECK(reader.error() == ReadError::truncated_payload);
}

TEST_CASE("every error has a text") {
    for (int code = 0; code <= static_cast<int>(ReadError::nested_too_deep); ++code)
        CHECK(std::string(read_error_text(static_cast<ReadError>(code))) != "unknown error");
}

TEST_CASE("damaged buffers are read to an end without leaving them") {
    Bytes bytes = stackshot();
    bytes.header(0x13, 16, 7).u32(0x903).fill(12, 0);
    bytes.header(0x2c, 32, 0x0000'0907'0000'0005).fill(32, 0);
    bytes.header(0x906, 128, 0x80).fill(128, 3);
    bytes.header(0x14, 0, 7).header(KCDATA_TYPE_BUFFER_END, 0, 0);
    std::mt19937 random(7);
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::byte> damaged = bytes.get();
        for (int flips = 0; flips < 3; ++flips)
            damaged[random() % damaged.size()] ^= static_cast<std::byte>(1u << (random() % 8));
        damaged.resize(random() % (damaged.size() + 1));
        damaged.shrink_to_fit();
        Reader reader(damaged);
        Item item;
        std::size_t items = 0;
        do {
            while (reader.next(item)) {
                // Each begin may be answered by an end that is not there.
                REQUIRE(++items <= 2 * damaged.size() / sizeof(ItemHeader));
                const std::byte* end = item.payload.data() + item.payload.size();
                if (!item.payload.empty()) {
                    REQUIRE(item.payload.data() >= damaged.data());
                    REQUIRE(end <= damaged.data() + damaged.size());
                }
            }
        } while (reader.resume());
        REQUIRE(reader.depth() <= Reader::max_nesting);
    }
}
