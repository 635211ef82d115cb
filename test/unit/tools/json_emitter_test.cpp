#include "tools/json_emitter.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>

using tools::JsonEmitter;

TEST_CASE("integers are exact at the ends of their ranges") {
    std::string text;
    JsonEmitter json(text, 0);
    json.begin_array();
    json.value(std::uint64_t{UINT64_MAX});
    json.value(std::int64_t{INT64_MIN});
    json.value(std::uint64_t{0});
    json.value(std::int64_t{-1});
    json.end_array();
    CHECK(text == "[18446744073709551615,-9223372036854775808,0,-1]");
}

TEST_CASE("nested objects and arrays are indented, empty ones stay on their line") {
    std::string text;
    JsonEmitter json(text, 1);
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
    JsonEmitter json(text, 0);
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
        JsonEmitter(text, 0).value(bytes);
        CHECK(nlohmann::json::parse(text).get<std::string>() == expected);
    }
}
