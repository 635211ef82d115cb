#include "tools/input.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string_view>

#include "captures.hpp"
#include "kcdata/types.hpp"
#include "packings.hpp"
#include "temporary_folder.hpp"

using namespace tools;
using namespace tools_test;

namespace {

Expected<Input> opened(const Bytes& bytes, std::uint64_t limit = Input::default_limit) {
    return Input::of(bytes, "bytes", limit);
}

Bytes bytes_of(const Input::Buffer& buffer) {
    return {buffer.bytes.begin(), buffer.bytes.end()};
}

Bytes operator+(Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

Bytes text(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

Bytes empty_buffer(std::uint32_t magic) {
    Bytes bytes(2 * sizeof(kcdata::ItemHeader));
    std::memcpy(bytes.data(), &magic, sizeof(magic));
    const std::uint32_t end = kcdata::KCDATA_TYPE_BUFFER_END;
    std::memcpy(bytes.data() + sizeof(kcdata::ItemHeader), &end, sizeof(end));
    return bytes;
}

/// A stackshot with one item of `size` zeros.
Bytes large_buffer(std::uint32_t size) {
    Bytes bytes = empty_buffer(kcdata::KCDATA_BUFFER_BEGIN_STACKSHOT);
    const kcdata::ItemHeader item{0x7777, size, 0};
    const auto header = std::as_bytes(std::span(&item, 1));
    const auto at = bytes.begin() + sizeof(item);
    bytes.insert(bytes.insert(at, header.begin(), header.end()) + sizeof(item), size, std::byte{0});
    return bytes;
}

}  // namespace

TEST_CASE("a capture is read in every packing, and in packings of packings") {
    const Bytes capture = small_capture();
    const Bytes ktrace_header(16, std::byte{0x11});
    const struct {
        const char* name;
        Bytes bytes;
    } packings[] = {
        {"plain", capture},
        {"gzip", gzipped(capture)},
        {"base64", base64(capture)},
        {"compressed", compressed(capture)},
        {"ktrace chunk", ktrace_header + capture},
        {"gzip of base64", gzipped(base64(capture))},
        {"base64 of gzip", base64(gzipped(capture))},
        {"gzip of compressed", gzipped(compressed(capture))},
        {"base64 of gzip of compressed", base64(gzipped(compressed(capture)))},
        {"gzip of a ktrace chunk", gzipped(ktrace_header + capture)},
    };
    for (const auto& [name, bytes] : packings) {
        INFO(name);
        const auto input = opened(bytes);
        REQUIRE(input.ok());
        REQUIRE(input.value().buffers().size() == 1);
        CHECK((bytes_of(input.value().buffers()[0]) == capture));
        CHECK(input.value().problems().empty());
        CHECK(input.value().remarks().empty());
    }
}

TEST_CASE("packings without end are refused") {
    Bytes bytes = small_capture();
    for (int i = 0; i < 5; ++i)
        bytes = gzipped(bytes);
    CHECK_FALSE(opened(bytes).ok());
}

TEST_CASE("files are mapped, pipes are read, and both give the same") {
    const TemporaryFolder folder;
    const Bytes capture = small_capture();
    write_bytes(folder / "a", capture);
    const auto file = Input::open(folder / "a");
    REQUIRE(file.ok());
    CHECK((bytes_of(file.value().buffers().at(0)) == capture));

    // A device that is no regular file: nothing to map, and nothing in it.
    CHECK_FALSE(Input::open("/dev/null").ok());
    CHECK_FALSE(Input::open(folder / "nothing").ok());
    CHECK_FALSE(Input::open(folder / "").ok());
}

TEST_CASE("the buffers of a file follow each other, with zeros between") {
    const Bytes one = small_capture();
    const Bytes two = empty_buffer(kcdata::KCDATA_BUFFER_BEGIN_OS_REASON);
    const Bytes three = large_buffer(100);
    for (const std::size_t zeros : {0u, 1u, 3u, 16u, 5000u}) {
        INFO(zeros);
        const Bytes gap(zeros, std::byte{0});
        const Bytes all = one + gap + two + gap + compressed(three) + gap + compressed(one) + gap;
        const auto input = opened(all);
        REQUIRE(input.ok());
        const auto& buffers = input.value().buffers();
        REQUIRE(buffers.size() == 4);
        CHECK((bytes_of(buffers[0]) == one));
        CHECK((bytes_of(buffers[1]) == two));
        CHECK((bytes_of(buffers[2]) == three));
        CHECK((bytes_of(buffers[3]) == one));
        CHECK(buffers[1].offset == one.size() + zeros);
        CHECK(input.value().problems().empty());
        CHECK(input.value().remarks().empty());
    }
    const auto members = opened(gzipped(one) + gzipped(two));
    REQUIRE(members.ok());
    CHECK(members.value().buffers().size() == 2);
    const auto texts = opened(base64(two) + text("\n") + base64(two));
    REQUIRE(texts.ok());
    CHECK(texts.value().buffers().size() == 2);
}

TEST_CASE("what follows the last buffer is remarked upon, unless it is zero") {
    const Bytes capture = small_capture();
    const auto zeros = opened(capture + Bytes(100, std::byte{0}));
    REQUIRE(zeros.ok());
    CHECK(zeros.value().remarks().empty());
    const auto rest = opened(capture + Bytes(100, std::byte{0}) + text("rest"));
    REQUIRE(rest.ok());
    CHECK(rest.value().buffers().size() == 1);
    REQUIRE(rest.value().remarks().size() == 1);
    CHECK(rest.value().remarks()[0].starts_with("4 bytes"));
    CHECK(rest.value().problems().empty());
}

TEST_CASE("a buffer behind bytes that are none is found, and those are remarked upon") {
    const Bytes capture = small_capture();
    // A magic alone is no buffer.
    const Bytes garbage =
        text("some text") + Bytes(40, std::byte{0}) + Bytes(capture.begin(), capture.begin() + 4);
    for (const Bytes& second : {capture, compressed(capture)}) {
        const auto input = opened(capture + garbage + second + text("rest"));
        REQUIRE(input.ok());
        REQUIRE(input.value().buffers().size() == 2);
        CHECK(input.value().buffers()[1].offset == capture.size() + garbage.size());
        CHECK((bytes_of(input.value().buffers()[1]) == capture));
        CHECK(input.value().remarks() ==
              std::vector<std::string>{"53 bytes in front of the buffer at " +
                                           fmt::format("{:#x}", capture.size() + garbage.size()) +
                                           " are passed over",
                                       "4 bytes behind the last buffer are passed over"});
        CHECK(input.value().problems().empty());
    }
}

TEST_CASE("what is no capture is told why") {
    const Bytes capture = small_capture();
    const auto why = [](const Bytes& bytes) {
        const auto input = opened(bytes);
        return input.ok() ? "" : input.failure().text;
    };
    CHECK(why({}) == "bytes: empty");
    const Bytes packed = gzipped(capture);
    const Bytes cut(packed.begin(), packed.begin() + 12);
    CHECK(why(cut) == "bytes: the gzip data is cut off; 0 bytes came out");
    CHECK(why(gzipped({})) == "bytes: nothing is in it");
    CHECK(why(gzipped(gzipped(gzipped(gzipped(gzipped(capture)))))) ==
          "bytes: packed more than 4 times");
}

TEST_CASE("what is no capture is refused, and named") {
    const TemporaryFolder folder;
    write_text(folder / "empty", "");
    write_text(folder / "text", "This is not a capture. It is some text, though.");
    write_bytes(folder / "gzip", gzipped(text("nor is this")));
    for (const char* name : {"empty", "text", "gzip", "nothing"}) {
        const auto input = Input::open(folder / name);
        REQUIRE_FALSE(input.ok());
        CHECK(input.failure().status == exit_failure);
        CHECK(input.failure().text.find(folder / name) != std::string::npos);
    }
}

TEST_CASE("of damaged packings, what comes out in front of the damage is there") {
    // Something that does not shrink to nothing.
    Bytes capture = large_buffer(200'000);
    for (std::size_t i = 100; i + 100 < capture.size(); ++i)
        capture[i] = static_cast<std::byte>(i * i >> 7 ^ i);
    for (const Bytes& packed : {gzipped(capture), compressed(capture)}) {
        Bytes cut = packed;
        cut.resize(cut.size() / 2);
        Bytes damaged = packed;
        for (std::size_t i = damaged.size() / 2; i < damaged.size(); ++i)
            damaged[i] = std::byte{0xff};
        for (const Bytes& bytes : {cut, damaged}) {
            const auto input = opened(bytes);
            REQUIRE(input.ok());
            CHECK_FALSE(input.value().problems().empty());
            REQUIRE(input.value().buffers().size() == 1);
            const auto got = input.value().buffers()[0].bytes;
            CHECK(got.size() > 1000);
            CHECK(got.size() < capture.size());
            CHECK(std::memcmp(got.data(), capture.data(), 1000) == 0);
        }
    }
    Bytes checksum = gzipped(capture);
    checksum[checksum.size() - 5] ^= std::byte{1};
    const auto input = opened(checksum);
    REQUIRE(input.ok());
    CHECK(input.value().problems().size() == 1);
    CHECK((bytes_of(input.value().buffers().at(0)) == capture));
}

TEST_CASE("more than the limit is refused, by what is declared and by what comes out") {
    const Bytes bomb = large_buffer(8 << 20);
    const std::uint64_t limit = 1 << 20;
    for (const Bytes& packed :
         {gzipped(bomb), gzipped(gzipped(bomb)), compressed(bomb), compressed(bomb, 1 << 16)}) {
        CHECK(packed.size() < limit);
        const auto input = opened(packed, limit);
        if (input.ok()) {
            // The head lies: what it says comes out, and no more.
            REQUIRE(input.value().problems().size() == 1);
            CHECK(input.value().buffers().at(0).bytes.size() <= limit);
        } else {
            CHECK(input.failure().text.find("--max-size") != std::string::npos);
        }
    }
    const auto declared = opened(compressed(small_capture(), UINT64_MAX), limit);
    REQUIRE_FALSE(declared.ok());
    CHECK(declared.failure().text.find("--max-size") != std::string::npos);
    // Many small ones count together.
    Bytes many;
    for (int i = 0; i < 20; ++i)
        many = many + compressed(large_buffer(100'000));
    CHECK(opened(many).ok());
    CHECK_FALSE(opened(many, limit).ok());
}

TEST_CASE("what does not stay in memory comes back from the temporary file unchanged") {
    const TemporaryFolder folder;
    Bytes bytes;
    Spool spool(UINT64_MAX, "");
    for (std::uint32_t i = 0; spool.size() < 3 * Spool::memory_size; ++i) {
        const Bytes piece(i % 10'000, static_cast<std::byte>(i));
        bytes = std::move(bytes) + piece;
        REQUIRE_FALSE(spool.append(piece));
    }
    const auto held = spool.take();
    REQUIRE(held.ok());
    CHECK((Bytes(held.value().get().begin(), held.value().get().end()) == bytes));

    // Nothing with a name is left, and a folder that is not there is named.
    REQUIRE(setenv("TMPDIR", (folder / "").c_str(), 1) == 0);
    Spool unnamed(UINT64_MAX, "");
    REQUIRE_FALSE(unnamed.append(bytes));
    CHECK(folder.file_count() == 0);
    REQUIRE(setenv("TMPDIR", (folder / "nothing").c_str(), 1) == 0);
    Spool nowhere(UINT64_MAX, "");
    const auto failure = nowhere.append(bytes);
    REQUIRE(failure);
    CHECK(failure->text.find(folder / "nothing") != std::string::npos);
    unsetenv("TMPDIR");
}
