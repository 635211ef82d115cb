#include "kcdata/serial/message.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <vector>

#include "kcdata/serial/crc32c.hpp"
#include "test/unit/kcdata/bytes.hpp"

using namespace kcdata;
using namespace kcdata::serial;

namespace {

std::vector<std::byte> bytes_of(const MessageBuffer& message) {
    return {message.bytes().begin(), message.bytes().end()};
}

ReadRequest read_of(std::vector<Range> ranges) {
    ReadRequest request;
    request.name = 0x04030201;
    request.first = 7;
    request.payload = 3840;
    request.kept = 2;
    for (const Range& range : ranges)
        request.ranges[request.count++] = range;
    return request;
}

bool same(const ReadRequest& one, const ReadRequest& other) {
    return one.name == other.name && one.first == other.first && one.payload == other.payload &&
           one.kept == other.kept && one.count == other.count &&
           std::equal(one.ranges.begin(),
                      one.ranges.begin() + static_cast<std::ptrdiff_t>(one.count),
                      other.ranges.begin());
}

}  // namespace

TEST_CASE("a request is its head and its body, little-endian") {
    MessageBuffer message;
    const BaudRateRequest body{.baud_rate = 921600};
    REQUIRE(encode_request(
        message, {.session = 0x11223344, .sequence = 0x55, .operation = Operation::baud_rate},
        std::as_bytes(std::span(&body, 1))));
    Bytes expected;
    expected.u32(0x11223344).u32(0x55).u8(12).u8(0).u8(0).u8(0).u32(921600);
    CHECK(bytes_of(message) == expected.get());
    Request request;
    REQUIRE(decode_request(message.bytes(), request));
    CHECK(request.head.session == 0x11223344);
    CHECK(request.head.sequence == 0x55);
    CHECK(request.head.operation == Operation::baud_rate);
    BaudRateRequest decoded;
    REQUIRE(decode_body(request.body, decoded));
    CHECK(decoded.baud_rate == 921600);
    for (std::size_t size = 0; size < 12; ++size)
        CHECK_FALSE(decode_request(message.bytes().first(size), request));
    CHECK_FALSE(decode_body(request.body.first(3), decoded));
}

TEST_CASE("an answer is its head and its body, little-endian") {
    MessageBuffer message;
    REQUIRE(encode_answer(message,
                          {.session = 1,
                           .sequence = 2,
                           .operation = Operation::stackshot,
                           .state = AnswerState::working,
                           .result = KERN_NOT_IN_SET},
                          {}));
    Bytes expected;
    expected.u32(1).u32(2).u8(3).u8(0).u8(1).u8(0).u32(12);
    CHECK(bytes_of(message) == expected.get());
    Answer answer;
    REQUIRE(decode_answer(message.bytes(), answer));
    CHECK(answer.head.result == KERN_NOT_IN_SET);
    CHECK(answer.head.state == AnswerState::working);
    for (std::size_t size = 0; size < 16; ++size)
        CHECK_FALSE(decode_answer(message.bytes().first(size), answer));
    std::vector<std::byte> strange = bytes_of(message);
    strange[10] = std::byte{2};
    CHECK_FALSE(decode_answer(strange, answer));
}

TEST_CASE("the bodies of messages are laid out as they were agreed on") {
    const StackshotRequest request{
        .flags = 1, .delta_timestamp = 2, .pagetable_mask = 3, .pid = -1, .size_hint = 4};
    MessageBuffer message;
    REQUIRE(message.append_value(request));
    CHECK(bytes_of(message) == Bytes().u64(1).u64(2).u64(3).u32(0xffffffff).u32(4).get());
    message.clear();
    REQUIRE(message.append_value(ObjectDescription{
        .name = 1, .size = 2, .kind = ObjectKind::text, .reserved = 0, .time = 5}));
    CHECK(bytes_of(message) == Bytes().u32(1).u32(2).u32(2).u32(0).u64(5).get());
    message.clear();
    REQUIRE(message.append_value(HelloAnswer{
        .version = 1, .boot = 2, .baud_rate = 3, .max_baud_rate = 4, .max_payload = 5}));
    CHECK(bytes_of(message) == Bytes().u32(1).u32(2).u32(3).u32(4).u32(5).get());
}

TEST_CASE("a message that does not fit is not made") {
    MessageBuffer message;
    const std::vector<std::byte> body(max_message_size);
    CHECK(encode_request(message, {}, std::span(body).first(max_message_size - 12)));
    CHECK_FALSE(encode_request(message, {}, std::span(body).first(max_message_size - 11)));
    CHECK(encode_answer(message, {}, std::span(body).first(max_message_size - 16)));
    CHECK_FALSE(encode_answer(message, {}, std::span(body).first(max_message_size - 15)));
}

TEST_CASE("a list of captures is whole descriptions, as many as are allowed") {
    std::array<ObjectDescription, max_listed> list;
    std::size_t count = 9;
    const std::vector<std::byte> body((max_listed + 1) * sizeof(ObjectDescription));
    CHECK(decode_list({}, list, count));
    CHECK(count == 0);
    CHECK(decode_list(std::span(body).first(max_listed * sizeof(ObjectDescription)), list, count));
    CHECK(count == max_listed);
    CHECK_FALSE(decode_list(body, list, count));
    CHECK_FALSE(decode_list(std::span(body).first(23), list, count));
    // The longest list fits into an answer.
    MessageBuffer message;
    CHECK(
        encode_answer(message, {}, std::span(body).first(max_listed * sizeof(ObjectDescription))));
}

TEST_CASE("the text of a request is printable ASCII of limited length") {
    const auto takes = [](std::string_view text) {
        std::string_view decoded;
        return decode_text(std::as_bytes(std::span(text)), decoded) && decoded == text;
    };
    CHECK(takes("daemons"));
    CHECK(takes("fleet tasks=3 threads=4"));
    CHECK(takes(std::string(max_request_text, '~')));
    CHECK_FALSE(takes(std::string(max_request_text + 1, '~')));
    CHECK_FALSE(takes(""));
    CHECK_FALSE(takes("a\n"));
    CHECK_FALSE(takes("a\x7f"));
    CHECK_FALSE(takes("\xc3\xa4"));
    CHECK_FALSE(takes(std::string_view("a\0b", 3)));
}

TEST_CASE("an object is named by the CRC of its bytes") {
    const std::string_view text = "123456789";
    const auto description = describe_object(std::as_bytes(std::span(text)), ObjectKind::text, 99);
    CHECK(description ==
          ObjectDescription{
              .name = 0xe3069283, .size = 9, .kind = ObjectKind::text, .reserved = 0, .time = 99});
}

TEST_CASE("a range near the one before takes one byte, any other up to nine") {
    MessageBuffer message;
    ReadRequest request = read_of({{0, 15 * 32}, {29 * 32, 32}, {45 * 32, 32}, {0, 16 * 32}});
    REQUIRE(encode_read(message, request, 100));
    CHECK(request.count == 4);
    Bytes expected;
    expected.u32(0x04030201).u32(7).u8(120).u8(2);
    expected.u8(0x0f).u8(0xe1);
    // 15 units behind the end of the one before: zigzag 30. Then back from 46 to 0: zigzag 91.
    expected.u8(0xf0).u8(30).u8(1).u8(0xf0).u8(91).u8(16);
    CHECK(bytes_of(message) == expected.get());
    ReadRequest decoded;
    REQUIRE(decode_read(message.bytes(), decoded));
    CHECK(same(decoded, request));

    message.clear();
    request = read_of({{0xffffff00, 32}, {0, 0xfffffee0}});
    REQUIRE(encode_read(message, request, 100));
    CHECK(message.bytes().size() == 10 + 6 + 9);
    REQUIRE(decode_read(message.bytes(), decoded));
    CHECK(same(decoded, request));
}

TEST_CASE("a range that ends inside of a unit is asked for up to the end of it") {
    MessageBuffer message;
    ReadRequest request = read_of({{64, 33}});
    REQUIRE(encode_read(message, request, 100));
    ReadRequest decoded;
    REQUIRE(decode_read(message.bytes(), decoded));
    CHECK(decoded.ranges[0] == Range{64, 64});
}

TEST_CASE("any ranges come back as they were, or those in front that fit") {
    std::mt19937 random(1);
    for (int round = 0; round < 2000; ++round) {
        std::vector<Range> ranges;
        for (auto count = 1 + random() % ReadRequest::max_ranges; count != 0; --count) {
            // Of every size.
            const auto number = [&](int bits) {
                return static_cast<std::uint32_t>(random() >> (32 - bits) >> random() % 26);
            };
            const std::uint32_t offset = number(27) * 32;
            const std::uint32_t length = (1 + number(26)) * 32;
            if (std::uint64_t{offset} + length < UINT32_MAX / 32 * 32)
                ranges.push_back({offset, length});
        }
        if (ranges.empty())
            continue;
        const std::size_t size = 10 + random() % 200;
        ReadRequest request = read_of(ranges);
        MessageBuffer message;
        const bool any = encode_read(message, request, size);
        REQUIRE(message.bytes().size() <= size);
        REQUIRE(any == (request.count != 0));
        // Another one may take nine bytes.
        REQUIRE((request.count == ranges.size() || message.bytes().size() + 9 > size));
        if (!any)
            continue;
        ReadRequest decoded;
        REQUIRE(decode_read(message.bytes(), decoded));
        REQUIRE(same(decoded, request));
    }
}

TEST_CASE("a malformed read request is not taken") {
    ReadRequest request;
    const auto taken = [&](const Bytes& ranges, std::uint8_t payload = 1) {
        Bytes bytes;
        bytes.u32(1).u32(1).u8(payload).u8(0);
        for (std::byte byte : ranges.get())
            bytes.u8(std::to_integer<std::uint8_t>(byte));
        return decode_read(bytes.get(), request);
    };
    CHECK(taken(Bytes().u8(1)));
    CHECK_FALSE(taken(Bytes()));                                     // nothing is asked for
    CHECK_FALSE(taken(Bytes().u8(1), 0));                            // frames of nothing
    CHECK_FALSE(taken(Bytes().u8(1), 121));                          // longer than a frame can be
    CHECK_FALSE(taken(Bytes().u8(0)));                               // an empty range
    CHECK_FALSE(taken(Bytes().u8(0xf1)));                            // no such byte
    CHECK_FALSE(taken(Bytes().u8(0xf0).u8(0)));                      // cut off
    CHECK_FALSE(taken(Bytes().u8(0xf0).u8(0).u8(0)));                // an empty range
    CHECK_FALSE(taken(Bytes().u8(0xf0).u8(1).u8(1)));                // before the object
    CHECK_FALSE(taken(Bytes().u8(0xf0).fill(6, 0x80).u8(1).u8(1)));  // an endless number
    // Behind what 32 bits count.
    CHECK_FALSE(taken(Bytes().u8(0xf0).fill(4, 0xff).u8(0x0f).u8(1)));
    CHECK_FALSE(taken(Bytes().u8(0xf0).u8(0).fill(4, 0xff).u8(0x0f)));
    Bytes many;
    many.fill(ReadRequest::max_ranges, 1);
    CHECK(taken(many));
    CHECK_FALSE(taken(many.u8(1)));
    CHECK_FALSE(decode_read(std::vector<std::byte>(9), request));
}

TEST_CASE("every operation has a name of its own") {
    std::vector<std::string> names;
    for (std::uint16_t operation = 1; operation <= 14; ++operation)
        names.push_back(operation_name(static_cast<Operation>(operation)));
    std::sort(names.begin(), names.end());
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
    CHECK(std::find(names.begin(), names.end(), "unknown operation") == names.end());
    CHECK(operation_name(static_cast<Operation>(15)) == std::string("unknown operation"));
}
