#include "kcdata/serial/frame.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kcdata/serial/crc32c.hpp"
#include "test/unit/kcdata/bytes.hpp"
#include "test/unit/kcdata/serial_line.hpp"

using namespace kcdata;
using namespace kcdata::serial;

namespace {

std::uint32_t crc_of(std::string_view text) {
    return crc32c(std::as_bytes(std::span(text)));
}

/// CRC-32C bit by bit from its definition.
std::uint32_t plain_crc(const std::vector<std::byte>& bytes) {
    std::uint32_t crc = 0xffffffff;
    for (std::byte byte : bytes) {
        crc ^= std::to_integer<std::uint32_t>(byte);
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
    return ~crc;
}

/// COBS undone as its paper describes it (Cheshire and Baker 1999), without the delimiters.
std::vector<std::byte> plain_uncobs(std::span<const std::byte> encoded) {
    std::vector<std::byte> result;
    std::size_t at = 0;
    while (at < encoded.size()) {
        const auto code = std::to_integer<std::size_t>(encoded[at]);
        REQUIRE(code != 0);
        REQUIRE(at + code <= encoded.size());
        result.insert(result.end(), encoded.begin() + static_cast<std::ptrdiff_t>(at + 1),
                      encoded.begin() + static_cast<std::ptrdiff_t>(at + code));
        at += code;
        if (code != 0xff && at < encoded.size())
            result.push_back(std::byte{0});
    }
    return result;
}

std::vector<std::byte> written(const DataFrame& frame, Encoding encoding = Encoding::binary) {
    Wire wire;
    REQUIRE(write_data_frame(wire, encoding, frame) == KERN_SUCCESS);
    return wire.bytes_;
}

/// The bytes of a frame before it is encoded, by the tables in frame.hpp and data_frame.hpp.
std::vector<std::byte> by_hand(const DataFrame& frame) {
    Bytes bytes;
    bytes.u8(0).u8(static_cast<std::uint8_t>(frame.kind));
    const std::size_t length = 12 + frame.payload.size();
    bytes.u8(static_cast<std::uint8_t>(length)).u8(static_cast<std::uint8_t>(length >> 8));
    bytes.u32(frame.object).u32(frame.offset).u32(frame.total);
    for (std::byte byte : frame.payload)
        bytes.u8(std::to_integer<std::uint8_t>(byte));
    bytes.u32(plain_crc(bytes));
    return bytes;
}

/// Base64 of RFC 4648, section 4, by its definition: the bits six by six, from the left.
std::string plain_base64(const std::vector<std::byte>& bytes) {
    std::vector<bool> bits;
    for (std::byte byte : bytes)
        for (int bit = 7; bit >= 0; --bit)
            bits.push_back((byte >> bit & std::byte{1}) != std::byte{0});
    while (bits.size() % 6 != 0)
        bits.push_back(false);
    std::string result;
    for (std::size_t at = 0; at < bits.size(); at += 6) {
        std::size_t value = 0;
        for (std::size_t bit = 0; bit < 6; ++bit)
            value = 2 * value + (bits[at + bit] ? 1 : 0);
        result += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[value];
    }
    return result;
}

std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool taken(std::span<const std::byte> bytes, DataFrame& data) {
    Frame frame;
    return parse_frame(bytes, Encoding::binary, frame) && parse_data_frame(frame, data);
}

}  // namespace

TEST_CASE("CRC-32C has the published check values") {
    STATIC_REQUIRE(crc32c({}) == 0);
    CHECK(crc_of("123456789") == 0xe3069283);
    // RFC 3720, B.4.
    std::array<std::byte, 32> block{};
    CHECK(crc32c(block) == 0x8a9136aa);
    block.fill(std::byte{0xff});
    CHECK(crc32c(block) == 0x62a8ab43);
    for (std::size_t index = 0; index < block.size(); ++index)
        block[index] = static_cast<std::byte>(index);
    CHECK(crc32c(block) == 0x46dd794e);
}

TEST_CASE("a CRC of parts is the CRC of the whole") {
    std::mt19937 random(3);
    const std::vector<std::byte> bytes = random_bytes(random, 300);
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        Crc32c crc;
        crc.update(std::span(bytes).first(cut));
        crc.update(std::span(bytes).subspan(cut));
        REQUIRE(crc.value() == crc32c(bytes));
    }
}

TEST_CASE("a frame on the line is its bytes in COBS between two zeros") {
    std::mt19937 random(4);
    std::vector<std::vector<std::byte>> payloads;
    for (std::size_t size :
         {1u, 2u, 200u, 229u, 230u, 231u, 253u, 254u, 255u, 508u, 3839u, 3840u}) {
        payloads.push_back(std::vector<std::byte>(size, std::byte{0}));
        payloads.push_back(std::vector<std::byte>(size, std::byte{0xff}));
        payloads.push_back(random_bytes(random, size));
        payloads.push_back(sparse_bytes(random, size));
    }
    for (const auto& payload : payloads) {
        const DataFrame frame = {.kind = FrameKind::data,
                                 .object = 0x04030201,
                                 .offset = 0x00020000,
                                 .total = 0x01000000,
                                 .payload = payload};
        const std::vector<std::byte> line = written(frame);
        REQUIRE(line.size() > 2);
        CHECK(line.front() == std::byte{0});
        CHECK(line.back() == std::byte{0});
        const auto inside = std::span(line).subspan(1, line.size() - 2);
        CHECK(std::count(inside.begin(), inside.end(), std::byte{0}) == 0);
        CHECK(inside[0] == std::byte{1});
        CHECK(plain_uncobs(inside) == by_hand(frame));
        CHECK(inside.size() <= by_hand(frame).size() + by_hand(frame).size() / 254 + 1);
    }
}

TEST_CASE("a text frame on the line is its bytes in base64 between a prefix and CR LF") {
    std::mt19937 random(7);
    for (std::size_t size : {1u, 2u, 3u, 4u, 47u, 48u, 49u, 255u, 3840u}) {
        const auto payload = random_bytes(random, size);
        const DataFrame frame = {.kind = FrameKind::data,
                                 .object = 0xfffefdfc,
                                 .offset = 1,
                                 .total = 1u << 20,
                                 .payload = payload};
        const std::string line = text_of(written(frame, Encoding::text));
        CHECK(line == "~kc:" + plain_base64(by_hand(frame)) + "\r\n");
        CHECK(line.size() == text_frame_size_on_line(12 + size));
    }
}

TEST_CASE("an end frame carries the total and no payload") {
    const DataFrame frame = {.kind = FrameKind::end, .object = 7, .offset = 5000, .total = 5000};
    const std::vector<std::byte> line = written(frame);
    CHECK(plain_uncobs(std::span(line).subspan(1, line.size() - 2)) == by_hand(frame));
}

TEST_CASE("a frame whose numbers contradict each other is neither written nor taken") {
    const std::vector<std::byte> payload(100, std::byte{1});
    const std::vector<std::byte> huge(max_frame_payload + 1, std::byte{1});
    const DataFrame good = {
        .kind = FrameKind::data, .offset = 900, .total = 1000, .payload = payload};
    DataFrame parsed;
    REQUIRE(taken(by_hand(good), parsed));
    CHECK(parsed.offset == 900);
    CHECK(parsed.payload.size() == 100);

    std::vector<DataFrame> bad(8, good);
    bad[0].offset = 901;
    bad[1].total = 0;
    bad[2].payload = {};
    bad[3].kind = FrameKind::end;
    bad[4].kind = static_cast<FrameKind>(0);
    bad[5].kind = FrameKind::request;
    bad[6].offset = UINT32_MAX;
    bad[7] = {.kind = FrameKind::data, .offset = 0, .total = 1u << 20, .payload = huge};
    for (const DataFrame& frame : bad) {
        Wire wire;
        CHECK(write_data_frame(wire, Encoding::binary, frame) == KERN_INVALID_ARGUMENT);
        CHECK(wire.bytes_.empty());
        CHECK_FALSE(taken(by_hand(frame), parsed));
    }
    CHECK(parsed.offset == 900);
}

TEST_CASE("a body that no frame can hold is not written") {
    const std::vector<std::byte> body(max_frame_body, std::byte{1});
    Wire wire;
    CHECK(write_frame(wire, Encoding::binary, FrameKind::answer, std::span(body).first(1), body) ==
          KERN_INVALID_ARGUMENT);
    CHECK(wire.bytes_.empty());
    CHECK(write_frame(wire, Encoding::binary, FrameKind::answer, body) == KERN_SUCCESS);
    CHECK(wire.bytes_.size() <= max_frame_size_on_line);
}

TEST_CASE("a frame with any bit flipped or any byte missing is not taken") {
    std::mt19937 random(5);
    const std::vector<std::byte> payload = sparse_bytes(random, 40);
    const std::vector<std::byte> bytes = by_hand(
        {.kind = FrameKind::data, .object = 9, .offset = 40, .total = 99, .payload = payload});
    Frame frame;
    REQUIRE(parse_frame(bytes, Encoding::binary, frame));
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        std::vector<std::byte> flipped = bytes;
        flipped[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        REQUIRE_FALSE(parse_frame(flipped, Encoding::binary, frame));
    }
    for (std::size_t size = 0; size < bytes.size(); ++size)
        REQUIRE_FALSE(parse_frame(std::span(bytes).first(size), Encoding::binary, frame));
}

TEST_CASE("a sender cuts a capture into frames and says when it is done") {
    std::mt19937 random(6);
    const std::vector<std::byte> capture = random_bytes(random, 5000);
    Wire wire;
    Sender sender(capture, wire);
    CHECK(sender.capture() == crc32c(capture));
    CHECK(sender.frame_count() == 2);
    for (int frame = 0; frame < 3; ++frame) {
        CHECK_FALSE(sender.done());
        REQUIRE(sender.send_next() == KERN_SUCCESS);
    }
    CHECK(sender.done());
    CHECK(sender.send_next() == KERN_INVALID_ARGUMENT);

    Sender nothing({}, wire);
    CHECK(nothing.send_next() == KERN_INVALID_ARGUMENT);
    CHECK(nothing.send_all() == KERN_INVALID_ARGUMENT);
}

TEST_CASE("frames and their delimiters cost under 1 percent of long captures, under 2 of 3 KiB") {
    std::mt19937 random(8);
    const auto size_on_line = [](const std::vector<std::byte>& capture) {
        Wire wire;
        Sender sender(capture, wire);
        REQUIRE(sender.send_all() == KERN_SUCCESS);
        return wire.bytes_.size();
    };
    for (const auto& [size, parts] :
         {std::pair{std::size_t{1} << 20, 100}, {std::size_t{3072}, 50}}) {
        for (const auto& capture : {std::vector<std::byte>(size, std::byte{0}),
                                    std::vector<std::byte>(size, std::byte{0xff}),
                                    random_bytes(random, size), sparse_bytes(random, size)})
            CHECK((size_on_line(capture) - size) * static_cast<std::size_t>(parts) < size);
    }
}

TEST_CASE("a line that fails stops the sender, and the frame is sent again") {
    class FailingWire final : public ByteSink {
      public:
        kern_return write(std::span<const std::byte> bytes) override {
            if (writes_left_-- == 0)
                return KERN_OPERATION_TIMED_OUT;
            return wire_.write(bytes);
        }
        int writes_left_ = 0;
        Wire wire_;
    };
    std::mt19937 random(9);
    const std::vector<std::byte> capture = sparse_bytes(random, 300);
    for (int failing = 0; failing < 40; ++failing) {
        FailingWire line;
        line.writes_left_ = failing;
        Sender sender(capture, line, {.payload = 128});
        CHECK(sender.send_all() == KERN_OPERATION_TIMED_OUT);
        CHECK_FALSE(sender.done());
        line.writes_left_ = 1000000;
        REQUIRE(sender.send_all() == KERN_SUCCESS);
        Recorder recorder;
        Receiver receiver(recorder);
        receiver.feed(line.wire_.bytes_);
        REQUIRE(recorder.complete_.size() == 1);
        CHECK(recorder.complete_[0].bytes == capture);
    }
}
