#include "tools/json_emitter.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>

using tools::JsonEmitter;
using tools::StringSink;

TEST_CASE("integers are exact at the ends of their ranges") {
    std::string text;
    StringSink sink(text);
    JsonEmitter json(sink, 0);
    json.begin_array();
    json.value(std::uint64_t{UINT64_MAX});
    json.value(std::int64_t{INT64_MIN});
    json.value(std::uint64_t{0});
    json.value(std::int64_t{-1});
    json.end_array();
    CHECK(text == "[18446744073709551615,-9223372036854775808,0,-1]");
}

TEST_CASE("numbers of every length have all their digits") {
    std::string text, expected;
    StringSink sink(text);
    JsonEmitter json(sink, 0);
    json.begin_array();
    for (std::uint64_t power = 1;; power *= 10) {
        for (const std::uint64_t number : {power - 1, power, power + 7, power / 3 * 2}) {
            json.value(number);
            json.value(-static_cast<std::int64_t>(number >> 1));
            expected += (expected.empty() ? "[" : ",") + std::to_string(number) + ',' +
                        std::to_string(-static_cast<std::int64_t>(number >> 1));
        }
        if (power > UINT64_MAX / 10)
            break;
    }
    json.end_array();
    CHECK(text == expected + "]");
}

TEST_CASE("nested objects and arrays are indented, empty ones stay on their line") {
    std::string text;
    StringSink sink(text);
    JsonEmitter json(sink, 1);
    json.begin_object();
    json.key("a");
    json.begin_array();
    json.value(std::uint64_t{1});
    json.begin_object();
    json.end_object();
    json.end_array();
    json.key("b");
    json.begin_array();
    json.end_array();
    json.end_object();
    CHECK(json.depth() == 0);
    CHECK(text == "{\n \"a\": [\n  1,\n  {}\n ],\n \"b\": []\n}");
}

TEST_CASE("a parser reads every character of a string back") {
    std::string all;
    for (int c = 1; c < 0x80; ++c)
        all += static_cast<char>(c);
    all += "\u00e9\u20ac\U0001f600";
    all.insert(10, 1, '\0');
    std::string text;
    StringSink sink(text);
    JsonEmitter json(sink, 0);
    json.begin_object();
    json.key(all);
    json.value(std::string_view(all));
    json.end_object();
    const auto parsed = nlohmann::json::parse(text);
    CHECK(parsed.at(all) == all);
}

TEST_CASE("bytes that are not UTF-8 become replacement characters, one for each") {
    const struct {
        std::string_view bytes, expected;
    } cases[] = {
        {"\x80", "\ufffd"},                                // a continuation without a beginning
        {"a\xc3", "a\ufffd"},                              // cut
        {"\xc0\xaf", "\ufffd\ufffd"},                      // overlong
        {"\xe0\x9f\xbf", "\ufffd\ufffd\ufffd"},            // overlong
        {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},            // a surrogate
        {"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},  // above U+10FFFF
        {"\xff"
         "b",
         "\ufffd"
         "b"},
    };
    for (const auto& [bytes, expected] : cases) {
        std::string text;
        StringSink sink(text);
        JsonEmitter(sink, 0).value(bytes);
        CHECK(nlohmann::json::parse(text).get<std::string>() == expected);
    }
}

TEST_CASE("bytes are numbers, addresses are hexadecimal text without leading zeros") {
    std::string text;
    StringSink sink(text);
    JsonEmitter json(sink, 0);
    const std::byte bytes[] = {std::byte{0},  std::byte{9},   std::byte{10},
                               std::byte{99}, std::byte{100}, std::byte{255}};
    json.begin_array();
    json.values(bytes);
    json.hexadecimal(0);
    json.hexadecimal(0xffffff8000e0be0a);
    json.end_array();
    CHECK(text == R"([0,9,10,99,100,255,"0x0","0xffffff8000e0be0a"])");
}

TEST_CASE("a key quoted beforehand is written as key() would") {
    const std::string_view name = "a\"\x01\xff";
    std::string text[2];
    for (const bool beforehand : {false, true}) {
        StringSink sink(text[beforehand ? 1 : 0]);
        JsonEmitter json(sink, 2);
        json.begin_object();
        beforehand ? json.key_text(JsonEmitter::quoted_key(name)) : json.key(name);
        json.value(std::uint64_t{1});
        json.end_object();
    }
    CHECK(text[0] == text[1]);
}

TEST_CASE("text of any size comes through the emitter's buffer in order") {
    std::string expected, text;
    StringSink sink(text);
    JsonEmitter json(sink, 0);
    json.begin_array();
    for (std::size_t size : {1u, 1000u, 65534u, 65535u, 65536u, 65537u, 300'000u}) {
        const std::string piece(size, static_cast<char>('a' + size % 26));
        json.value(std::string_view(piece));
        expected += (expected.empty() ? "[\"" : ",\"") + piece + '"';
    }
    json.end_array();
    CHECK((text == expected + "]"));
}

TEST_CASE("an emitter whose sink is full says so") {
    struct FullSink final : tools::TextSink {
        bool write(std::string_view) override { return false; }
    } sink;
    JsonEmitter json(sink, 0);
    CHECK_FALSE(json.failed());
    json.begin_array();
    json.end_array();
    CHECK(json.failed());
}
