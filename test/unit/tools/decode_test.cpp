#include "tools/decode.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "captures.hpp"
#include "kcdata/format.hpp"
#include "kcdata/reader.hpp"
#include "kcdata/types.hpp"
#include "strict_json.hpp"
#include "tools/item_layout.hpp"

using namespace kcdata;
using nlohmann::json;
using tools_test::Bytes;

namespace {

/// A buffer put together byte by byte, right or wrong, without the writer.
class Buffer {
  public:
    explicit Buffer(std::uint32_t magic = KCDATA_BUFFER_BEGIN_STACKSHOT) { item(magic, 0, {}); }

    Buffer& item(std::uint32_t type, std::uint64_t flags, std::string_view payload) {
        const ItemHeader header{type, static_cast<std::uint32_t>(payload.size()), flags};
        append(std::as_bytes(std::span(&header, 1)));
        append(std::as_bytes(std::span(payload)));
        return *this;
    }
    Buffer& array(std::uint32_t element_type, std::uint32_t count, std::string_view payload) {
        return item(KCDATA_TYPE_ARRAY_PAD0, std::uint64_t{element_type} << 32 | count, payload);
    }
    Buffer& begin(std::uint32_t container_type, std::uint64_t id) {
        return item(KCDATA_TYPE_CONTAINER_BEGIN, id, bytes_of(container_type));
    }
    Buffer& end(std::uint64_t id) { return item(KCDATA_TYPE_CONTAINER_END, id, {}); }
    Bytes finish() {
        item(KCDATA_TYPE_BUFFER_END, 0, {});
        return bytes_;
    }
    /// Without BUFFER_END.
    Bytes unfinished() const { return bytes_; }

    template <typename T>
    static std::string bytes_of(T value) {
        std::string text(sizeof(value), '\0');
        std::memcpy(text.data(), &value, sizeof(value));
        return text;
    }

  private:
    void append(std::span<const std::byte> bytes) {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    Bytes bytes_{};
};

template <typename T>
std::string bytes_of(T value) {
    return Buffer::bytes_of(value);
}

std::string padded(std::string text, std::size_t size) {
    text.resize(size, '\0');
    return text;
}

json decoded(const Bytes& buffer, std::size_t problems = 0,
             const tools::DecodeOptions& options = {}) {
    std::string text;
    tools::StringSink sink(text);
    tools::JsonEmitter emitter(sink, 0);
    const tools::Decoded result = tools::decode(buffer, emitter, options);
    for (const std::string& problem : result.problems)
        UNSCOPED_INFO(problem);
    CHECK(result.problem_count == problems);
    CHECK(result.problems.size() == std::min(problems, tools::Decoded::told_problems));
    CHECK(result.written == !text.empty());
    return result.written ? tools_test::parse_strictly(text) : json();
}

json stackshot(const Bytes& buffer, std::size_t problems = 0,
               const tools::DecodeOptions& options = {}) {
    return decoded(buffer, problems, options).at("kcdata_stackshot");
}

constexpr tools::DecodeOptions full{.full = true};

std::vector<std::string> problems_of(const Bytes& buffer) {
    tools::CountingSink sink;
    tools::JsonEmitter emitter(sink);
    return tools::decode(buffer, emitter).problems;
}

std::string_view text_of(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A TYPEDEFINTION's payload.
std::string definition(std::uint32_t id, std::uint32_t count, const char* name) {
    return bytes_of(id) + bytes_of(count) + padded(name, 32);
}
std::string field(std::uint8_t flags, std::uint8_t type, std::uint16_t offset, std::uint32_t size,
                  const char* name) {
    return bytes_of(flags) + bytes_of(type) + bytes_of(offset) + bytes_of(size) + padded(name, 32);
}

}  // namespace

TEST_CASE("an empty buffer is an empty object under the key of its magic") {
    CHECK(decoded(Buffer().finish()) == json{{"kcdata_stackshot", json::object()}});
    CHECK(decoded(Buffer(KCDATA_BUFFER_BEGIN_CRASHINFO).finish()) ==
          json{{"kcdata_crashinfo", json::object()}});
    CHECK(decoded(Buffer(KCDATA_BUFFER_BEGIN_DELTA_STACKSHOT).finish()) ==
          json{{"kcdata_delta_stackshot", json::object()}});
}

TEST_CASE("described values are under their own name, signed where they are") {
    const auto name = padded("answer", description_size);
    CHECK(stackshot(
              Buffer().item(KCDATA_TYPE_UINT64_DESC, 0, name + bytes_of(UINT64_MAX)).finish()) ==
          json{{"answer", UINT64_MAX}});
    CHECK(
        stackshot(
            Buffer().item(KCDATA_TYPE_INT32_DESC, 0, name + bytes_of(std::int32_t{-2})).finish()) ==
        json{{"answer", -2}});
    CHECK(stackshot(Buffer().item(KCDATA_TYPE_STRING_DESC, 0, name + "yes").finish()) ==
          json{{"answer", "yes"}});
}

TEST_CASE("a basic type is printed under its field's name, a struct under its type's") {
    CHECK(stackshot(Buffer()
                        .item(STACKSHOT_KCTYPE_KERN_PAGE_SIZE, 0, bytes_of(std::uint32_t{4096}))
                        .item(KCDATA_TYPE_TIMEBASE, 0,
                              bytes_of(std::uint32_t{125}) + bytes_of(std::uint32_t{3}))
                        .finish()) ==
          json{{"kernel_page_size", 4096}, {"mach_timebase_info", {{"numer", 125}, {"denom", 3}}}});
}

TEST_CASE("fields that the payload does not reach are left out, a tail is ignored") {
    const auto value = bytes_of(std::uint64_t{7});
    CHECK(stackshot(Buffer().item(STACKSHOT_KCTYPE_INSTRS_CYCLES, 0, value + value).finish()) ==
          json{{"instrs_cycles_snapshot", {{"ics_instructions", 7}, {"ics_cycles", 7}}}});
    CHECK(stackshot(Buffer().item(STACKSHOT_KCTYPE_INSTRS_CYCLES, 0, value + "half").finish()) ==
          json{{"instrs_cycles_snapshot", {{"ics_instructions", 7}}}});
    CHECK(stackshot(Buffer().item(STACKSHOT_KCTYPE_KERN_PAGE_SIZE, 0, value + value).finish()) ==
          json{{"kernel_page_size", 7}});
    CHECK(stackshot(Buffer().item(STACKSHOT_KCTYPE_KERN_PAGE_SIZE, 0, "ab").finish()) ==
          json::object());
    CHECK(stackshot(Buffer().item(KCDATA_TYPE_TIMEBASE, 0, "").finish()) ==
          json{{"mach_timebase_info", json::object()}});
}

TEST_CASE("merged types put their fields into the parent") {
    CHECK(stackshot(Buffer()
                        .item(STACKSHOT_KCTYPE_STACKSHOT_DURATION, 0,
                              bytes_of(std::uint64_t{1}) + bytes_of(std::uint64_t{2}))
                        .finish()) ==
          json{{"stackshot_duration", 1}, {"stackshot_duration_outer", 2}});
}

TEST_CASE("the padding that the flags tell is no part of the payload") {
    CHECK(stackshot(Buffer().item(0x7777, 0x82, "abcd").finish()) ==
          json{{"Type_0x7777", {97, 98}}});
}

TEST_CASE("text ends at its NUL or at the end of the item") {
    CHECK(stackshot(Buffer()
                        .item(STACKSHOT_KCTYPE_BOOTARGS, 0, std::string_view("a=1\0junk", 8))
                        .item(STACKSHOT_KCTYPE_OSVERSION, 0, "no NUL")
                        .finish()) == json{{"boot_args", "a=1"}, {"osversion", "no NUL"}});
}

TEST_CASE("an unknown item is a list of its bytes, a single byte a number") {
    CHECK(stackshot(Buffer().item(0x7777, 0, "\x01\xff").item(0x7778, 0, "\x05").finish()) ==
          json{{"Type_0x7777", {1, 255}}, {"Type_0x7778", 5}});
}

TEST_CASE("array elements are structs or bare values; one element is still a list, none too") {
    const auto frames = bytes_of(std::uint64_t{0x10}) + bytes_of(UINT64_MAX);
    CHECK(stackshot(Buffer()
                        .array(STACKSHOT_KCTYPE_KERN_STACKLR64, 2, frames)
                        .array(STACKSHOT_KCTYPE_DONATING_PIDS, 1, bytes_of(std::int32_t{-3}))
                        .array(STACKSHOT_KCTYPE_USER_STACKLR64, 0, "")
                        .finish()) ==
          json{{"kernel_stack_frames", {{{"lr", 0x10}}, {{"lr", UINT64_MAX}}}},
               {"donating_pids", {-3}},
               {"user_stack_frames", json::array()}});
}

TEST_CASE("lists under one key are joined, anything else twice is an error") {
    const auto pid = [](std::int32_t value) { return bytes_of(value); };
    CHECK(stackshot(Buffer()
                        .array(STACKSHOT_KCTYPE_DONATING_PIDS, 1, pid(1))
                        .array(STACKSHOT_KCTYPE_DONATING_PIDS, 2, pid(2) + pid(3))
                        .finish()) == json{{"donating_pids", {1, 2, 3}}});
    const auto four = bytes_of(std::uint32_t{4});
    CHECK(stackshot(Buffer()
                        .item(STACKSHOT_KCTYPE_JETSAM_LEVEL, 0, four)
                        .item(STACKSHOT_KCTYPE_JETSAM_LEVEL, 0, bytes_of(std::uint32_t{5}))
                        .finish(),
                    1) == json{{"jetsam_level", 4}});
}

TEST_CASE("containers are objects by type and decimal id; unknown types are decimal too") {
    const auto page = bytes_of(std::uint32_t{1});
    CHECK(
        stackshot(Buffer()
                      .begin(STACKSHOT_KCCONTAINER_TASK, UINT64_MAX)
                      .begin(STACKSHOT_KCCONTAINER_THREAD, 5)
                      .item(STACKSHOT_KCTYPE_KERN_PAGE_SIZE, 0, page)
                      .end(5)
                      .begin(STACKSHOT_KCCONTAINER_THREAD, 6)
                      .end(6)
                      .end(UINT64_MAX)
                      .begin(0x777, 1)
                      .end(1)
                      .finish()) ==
        json{
            {"task_snapshots",
             {{"18446744073709551615",
               {{"thread_snapshots", {{"5", {{"kernel_page_size", 1}}}, {"6", json::object()}}}}}}},
            {"1911", {{"1", json::object()}}}});
}

TEST_CASE("the same container id twice is an error, and the first one stays") {
    const auto value = [](std::uint32_t v) { return bytes_of(v); };
    CHECK(stackshot(Buffer()
                        .begin(STACKSHOT_KCCONTAINER_TASK, 1)
                        .item(STACKSHOT_KCTYPE_ASID, 0, value(1))
                        .end(1)
                        .begin(STACKSHOT_KCCONTAINER_TASK, 1)
                        .item(STACKSHOT_KCTYPE_ASID, 0, value(2))
                        .end(1)
                        .finish(),
                    1) == json{{"task_snapshots", {{"1", {{"ts_asid", 1}}}}}});
}

TEST_CASE("more than sixteen containers keep apart") {
    Buffer buffer;
    json expected = json::object();
    for (std::uint32_t id = 0; id < 100; ++id) {
        buffer.begin(STACKSHOT_KCCONTAINER_TASK, id)
            .item(STACKSHOT_KCTYPE_ASID, 0, bytes_of(id))
            .end(id);
        expected["task_snapshots"][std::to_string(id)] = {{"ts_asid", id}};
    }
    CHECK(stackshot(buffer.finish()) == expected);
}

TEST_CASE("a nested buffer is printed under its own key") {
    const Bytes inner = Buffer(KCDATA_BUFFER_BEGIN_OS_REASON)
                            .item(KCDATA_TYPE_PID, 0, bytes_of(std::int32_t{9}))
                            .finish();
    CHECK(decoded(Buffer(KCDATA_BUFFER_BEGIN_CRASHINFO)
                      .item(KCDATA_TYPE_NESTED_KCDATA, 0, text_of(inner))
                      .finish()) == json{{"kcdata_crashinfo", {{"kcdata_reason", {{"pid", 9}}}}}});
}

TEST_CASE("buffers nested without end are refused") {
    Bytes buffer = Buffer().finish();
    for (int level = 0; level < 20; ++level) {
        buffer = Buffer().item(KCDATA_TYPE_NESTED_KCDATA, 0, text_of(buffer)).finish();
    }
    const json printed = decoded(buffer, 1);
    std::size_t levels = 0;
    for (const json* level = &printed; level->contains("kcdata_stackshot"); ++levels)
        level = &level->at("kcdata_stackshot");
    CHECK(levels == 1 + tools::max_nested_buffers);
}

TEST_CASE("a type definition describes later items, and is printed with its fields") {
    const std::string two = definition(0x7000, 2, "sample") + field(0, 6, 0, 4, "value") +
                            field(1, 1, 4, 4u << 16 | 1, "text");
    const json printed = {{"typeID", 0x7000},
                          {"numOfFields", 2},
                          {"name", "sample"},
                          {"fields", {"[0,4] int32_t  value;", "[4,4] char  text[4];"}}};
    CHECK(stackshot(Buffer()
                        .item(KCDATA_TYPE_TYPEDEFINTION, 0, two)
                        .item(0x7000, 0, bytes_of(std::int32_t{-1}) + "abc")
                        .finish()) ==
          json{{"typedef[sample]", printed}, {"sample", {{"value", -1}, {"text", "abc"}}}});

    // libkdd registers a definition of one field elsewhere: the id stays unknown.
    const std::string one = definition(0x7001, 1, "single") + field(0, 3, 0, 1, "byte");
    const json both = stackshot(
        Buffer().item(KCDATA_TYPE_TYPEDEFINTION, 0, one).item(0x7001, 0, "\x07").finish());
    CHECK(both.at("Type_0x7001") == 7);
    CHECK(both.contains("typedef[byte]"));
}

TEST_CASE("keys that differ only in what is not UTF-8 are one key") {
    const auto described = [](const char* description, std::uint32_t value) {
        return padded(description, description_size) + bytes_of(value);
    };
    const Bytes buffer = Buffer()
                             .item(KCDATA_TYPE_UINT32_DESC, 0, described("a\xfe", 1))
                             .item(KCDATA_TYPE_UINT32_DESC, 0, described("a\xff", 2))
                             .item(KCDATA_TYPE_UINT32_DESC, 0, described("a\xff\xff", 3))
                             .finish();
    CHECK(decoded(buffer, 1).at("kcdata_stackshot") == json{{"a\ufffd", 1}, {"a\ufffd\ufffd", 3}});
    CHECK(decoded(buffer, 0, full).at("kcdata_stackshot") ==
          json{{"a\ufffd", {1, 2}}, {"a\ufffd\ufffd", 3}});
    const std::string same =
        definition(0x7000, 2, "same") + field(0, 3, 0, 1, "\xfe") + field(0, 3, 1, 1, "\xff");
    stackshot(Buffer().item(KCDATA_TYPE_TYPEDEFINTION, 0, same).finish(), 1);
}

TEST_CASE("what stands before the damage is decoded, and the damage has its offset") {
    Bytes cut = Buffer()
                    .begin(STACKSHOT_KCCONTAINER_TASK, 1)
                    .item(STACKSHOT_KCTYPE_ASID, 0, bytes_of(std::uint32_t{1}))
                    .item(0x7777, 0, std::string(100, 'x'))
                    .unfinished();
    const std::size_t last_item = cut.size() - 100 - sizeof(ItemHeader);
    cut.resize(cut.size() - 1);
    const auto problems = problems_of(cut);
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].starts_with(
        fmt::format("offset {:#x}, item 3, in task_snapshots/1: ", last_item)));
    CHECK(stackshot(cut, 1) == json{{"task_snapshots", {{"1", {{"ts_asid", 1}}}}}});
}

TEST_CASE("decoding goes on behind an array that contradicts itself") {
    CHECK(stackshot(Buffer()
                        .array(STACKSHOT_KCTYPE_KERN_STACKLR64, 3, "12345678")
                        .item(STACKSHOT_KCTYPE_ASID, 0, bytes_of(std::uint32_t{1}))
                        .finish(),
                    1) == json{{"ts_asid", 1}});
}

TEST_CASE("a container that is not ended ends with the one around it") {
    const auto asid = bytes_of(std::uint32_t{1});
    const Bytes buffer = Buffer()
                             .begin(STACKSHOT_KCCONTAINER_TASK, 1)
                             .begin(STACKSHOT_KCCONTAINER_THREAD, 5)
                             .end(1)
                             .begin(STACKSHOT_KCCONTAINER_TASK, 2)
                             .item(STACKSHOT_KCTYPE_ASID, 0, asid)
                             .end(77)
                             .begin(STACKSHOT_KCCONTAINER_THREAD, 6)
                             .finish();
    CHECK(stackshot(buffer, 3) ==
          json{{"task_snapshots",
                {{"1", {{"thread_snapshots", {{"5", json::object()}}}}},
                 {"2", {{"ts_asid", 1}, {"thread_snapshots", {{"6", json::object()}}}}}}}});
}

TEST_CASE("one wrong size costs the item that has it, and the gap is named") {
    const Bytes capture = tools_test::small_capture();
    const json whole = decoded(capture);
    kcdata::Reader reader(capture);
    kcdata::Item item;
    std::size_t tried = 0;
    while (reader.next(item)) {
        if (item.type != STACKSHOT_KCTYPE_CPU_TIMES)
            continue;
        Bytes damaged = capture;
        damaged[item.offset + 7] = std::byte{0x70};
        json expected = whole;
        expected["kcdata_stackshot"]["task_snapshots"][std::to_string(reader.open_id(1))]
                ["thread_snapshots"][std::to_string(reader.open_id(2))]
                    .erase("cpu_times");
        CHECK((decoded(damaged, 1) == expected));
        const auto problems = problems_of(damaged);
        CHECK(problems.at(0).ends_with(fmt::format("{:#x}", reader.following())));
        ++tried;
    }
    CHECK(tried == 8);
}

TEST_CASE("a nested buffer's damage is told with its place in the whole file") {
    Bytes inner = Buffer(KCDATA_BUFFER_BEGIN_OS_REASON).unfinished();
    const Bytes outer = Buffer()
                            .begin(STACKSHOT_KCCONTAINER_TASK, 3)
                            .item(KCDATA_TYPE_NESTED_KCDATA, 0, text_of(inner))
                            .end(3)
                            .finish();
    const auto problems = problems_of(outer);
    REQUIRE(problems.size() == 1);
    // Behind BEGIN, CONTAINER_BEGIN with its type, and two more headers.
    CHECK(problems[0].starts_with("offset 0x44, item 1, in task_snapshots/3/kcdata_reason: "));
}

TEST_CASE("problems beyond the first hundred are only counted") {
    Buffer buffer;
    for (int i = 0; i < 250; ++i)
        buffer.array(STACKSHOT_KCTYPE_KERN_STACKLR64, 3, "12345678");
    CHECK(stackshot(buffer.finish(), 250) == json::object());
}

TEST_CASE("what is no buffer is refused; a compressed one has to be inflated first") {
    CHECK(decoded(Buffer(KCDATA_BUFFER_BEGIN_COMPRESSED).finish(), 1).is_null());
    CHECK(decoded(Buffer(0x12345678).finish(), 1).is_null());
    CHECK(decoded({}, 1).is_null());
    CHECK(decoded(Buffer().finish()).is_object());
}

TEST_CASE("a backtrace info buffer, which libkdd refuses, is decoded like the others") {
    const auto pcs = bytes_of(std::uint64_t{16}) + bytes_of(std::uint64_t{32});
    const Bytes buffer = Buffer(KCDATA_BUFFER_BEGIN_BTINFO)
                             .item(TASK_BTINFO_THREAD_ID, 0, bytes_of(std::uint64_t{5}))
                             .array(TASK_BTINFO_BACKTRACE64, 2, pcs)
                             .finish();
    CHECK(decoded(buffer).at("kcdata_btinfo").at("Type_0xa20") == json{5, 0, 0, 0, 0, 0, 0, 0});
    CHECK(decoded(buffer, 0, full) ==
          json{{"kcdata_btinfo",
                {{"TASK_BTINFO_THREAD_ID", 5}, {"TASK_BTINFO_BACKTRACE64", {"0x10", "0x20"}}}}});
}

TEST_CASE("a nested item that is no buffer is printed as bytes") {
    CHECK(stackshot(Buffer().item(KCDATA_TYPE_NESTED_KCDATA, 0, "ab").finish(), 1) ==
          json{{"Type_0x38", {97, 98}}});
}

TEST_CASE("a definition describes what stands behind it, in containers too, not before") {
    const std::string two =
        definition(0x7000, 2, "sample") + field(0, 3, 0, 1, "a") + field(0, 3, 1, 1, "b");
    CHECK(stackshot(Buffer()
                        .begin(STACKSHOT_KCCONTAINER_TASK, 1)
                        .item(0x7000, 0, "\x01\x02")
                        .end(1)
                        .item(KCDATA_TYPE_TYPEDEFINTION, 0, two)
                        .begin(STACKSHOT_KCCONTAINER_TASK, 2)
                        .item(0x7000, 0, "\x01\x02")
                        .end(2)
                        .finish())
              .at("task_snapshots") ==
          json{{"1", {{"Type_0x7000", {1, 2}}}}, {"2", {{"sample", {{"a", 1}, {"b", 2}}}}}});
}

TEST_CASE("a definition that says the same bytes over and over is refused") {
    std::string many = definition(0x7000, 50, "bomb");
    for (int i = 0; i < 50; ++i)
        many += field(0, 9, 0, 8, ("field" + std::to_string(i)).c_str());
    const auto decoded = stackshot(Buffer().item(KCDATA_TYPE_TYPEDEFINTION, 0, many).finish(), 1);
    CHECK(decoded.contains("Type_0x12"));
    const std::string same =
        definition(0x7000, 2, "same") + field(0, 3, 0, 1, "a") + field(0, 3, 1, 1, "a");
    stackshot(Buffer().item(KCDATA_TYPE_TYPEDEFINTION, 0, same).finish(), 1);
}

TEST_CASE("a described value under the name of the containers leaves them no place") {
    const auto name = padded("task_snapshots", description_size) + bytes_of(std::uint32_t{1});
    CHECK(stackshot(Buffer()
                        .begin(STACKSHOT_KCCONTAINER_TASK, 1)
                        .end(1)
                        .item(KCDATA_TYPE_UINT32_DESC, 0, name)
                        .finish(),
                    1) == json{{"task_snapshots", 1}});
}

TEST_CASE("many items of one key, and many containers of one id, take no time that grows faster") {
    // 100,000 of each: anything that compared them all with each other would not end.
    Buffer buffer;
    json expected = json::array();
    for (std::uint32_t i = 0; i < 100'000; ++i) {
        buffer.array(STACKSHOT_KCTYPE_DONATING_PIDS, 1, bytes_of(i));
        expected.push_back(i);
        buffer.begin(STACKSHOT_KCCONTAINER_TASK, 1).end(1);
        buffer.item(KCDATA_TYPE_UINT32_DESC, 0,
                    padded(std::to_string(i), description_size) + bytes_of(i));
    }
    const json result = stackshot(buffer.finish(), 99'999);
    CHECK((result.at("donating_pids") == expected));
    CHECK(result.at("99999") == 99'999);
    CHECK(result.size() == 100'002);
}

TEST_CASE("in full, every value of a repeated key is kept") {
    const auto level = [](std::uint32_t value) { return bytes_of(value); };
    CHECK(stackshot(Buffer()
                        .item(STACKSHOT_KCTYPE_JETSAM_LEVEL, 0, level(4))
                        .item(STACKSHOT_KCTYPE_JETSAM_LEVEL, 0, level(5))
                        .begin(STACKSHOT_KCCONTAINER_TASK, 1)
                        .item(STACKSHOT_KCTYPE_ASID, 0, level(1))
                        .end(1)
                        .begin(STACKSHOT_KCCONTAINER_TASK, 1)
                        .item(STACKSHOT_KCTYPE_ASID, 0, level(2))
                        .end(1)
                        .finish(),
                    0, full) ==
          json{{"jetsam_level", {4, 5}},
               {"task_snapshots", {{"1", {{{"ts_asid", 1}}, {{"ts_asid", 2}}}}}}});
}

TEST_CASE("in full, bytes that no field explains are kept beside those that are") {
    const auto four = bytes_of(std::uint32_t{4});
    CHECK(stackshot(Buffer()
                        .item(STACKSHOT_KCTYPE_JETSAM_LEVEL, 0x80, four + "ab")
                        .item(STACKSHOT_KCTYPE_ASID, 0x80, "a")
                        .item(KCDATA_TYPE_TIMEBASE, 0x80, four + four + "c")
                        .item(0x7777, 0x80, "d")
                        .item(0x7778, 0x80, "")
                        .array(STACKSHOT_KCTYPE_DONATING_PIDS, 1, four + "e")
                        .finish(),
                    0, full) ==
          json{{"jetsam_level", {{"jetsam_level", 4}, {"trailing_bytes", {97, 98}}}},
               {"ts_asid", {{"trailing_bytes", {97}}}},
               {"mach_timebase_info", {{"numer", 4}, {"denom", 4}, {"trailing_bytes", {99}}}},
               {"Type_0x7777", {100}},
               {"Type_0x7778", json::array()},
               {"donating_pids", {{{"donating_pids", 4}, {"trailing_bytes", {101}}}}}});
    // Padding that an old writer did not tell is none of them.
    CHECK(stackshot(Buffer().item(STACKSHOT_KCTYPE_JETSAM_LEVEL, 0, padded(four, 16)).finish(), 0,
                    full) == json{{"jetsam_level", 4}});
}

TEST_CASE("in full, fields have XNU's names and types, and those libkdd does not know are there") {
    const auto eight = bytes_of(std::uint64_t{0x1000});
    CHECK(stackshot(Buffer()
                        .item(STACKSHOT_KCTYPE_SHAREDCACHE_LOADINFO, 0x80, eight)
                        .item(TASK_CRASHINFO_JIT_ADDRESS_RANGE, 0x80, eight + eight)
                        .item(TASK_CRASHINFO_LEDGER_INTERNAL, 0x80, eight)
                        .item(STACKSHOT_KCTYPE_PORTLABEL, 0x80, std::string("\1\0\2\0\xff", 5))
                        .item(STACKSHOT_KCTYPE_SUSPENSION_INFO, 0x80, eight)
                        .item(TASK_CRASHINFO_UUID, 0x80, "ab")
                        .item(KCDATA_TYPE_BINDATA_DESC, 0x80, padded("blob", 32) + "c")
                        .finish(),
                    0, full) ==
          json{{"shared_cache_dyld_load_info", {{"sharedCacheSlide", "0x1000"}}},
               {"TASK_CRASHINFO_JIT_ADDRESS_RANGE",
                {{"start_address", "0x1000"}, {"end_address", "0x1000"}}},
               {"TASK_CRASHINFO_LEDGER_INTERNAL", 0x1000},
               {"portlabel_id", 1},
               {"portlabel_flags", 2},
               {"portlabel_domain", 255},
               {"STACKSHOT_KCTYPE_SUSPENSION_INFO", {{"tss_last_start", 0x1000}}},
               {"TASK_CRASHINFO_UUID", {97, 98}},
               {"blob", {99}}});
}

TEST_CASE("by name, flags are a list and an enumeration is text; what has no name is a number") {
    constexpr tools::DecodeOptions names{.names = true};
    const auto task = [](std::uint64_t flags) {
        return bytes_of(std::uint64_t{1}) + bytes_of(flags);
    };
    const auto flags_of = [&](std::uint64_t flags) {
        return stackshot(Buffer().item(STACKSHOT_KCTYPE_TASK_SNAPSHOT, 0x80, task(flags)).finish(),
                         0, names)
            .at("task_snapshot")
            .at("ts_ss_flags");
    };
    CHECK(flags_of(0) == json::array());
    // kTerminatedSnapshot, kPidSuspended; bit 63 has no name.
    CHECK(flags_of(0x8 | 0x10 | 1ull << 63) ==
          json{"kTerminatedSnapshot", "kPidSuspended", "0x8000000000000000"});
    const auto wait = [](std::uint8_t type) { return padded("", 24) + static_cast<char>(type); };
    const json waits =
        stackshot(
            Buffer().array(STACKSHOT_KCTYPE_THREAD_WAITINFO, 2, wait(0x01) + wait(0xee)).finish(),
            0, names)
            .at("thread_waitinfo");
    CHECK(waits[0].at("wait_type") == "kThreadWaitKernelMutex");
    CHECK(waits[1].at("wait_type") == 0xee);
}

TEST_CASE("lines: first what is in no container, then one container each; together it is all") {
    const Bytes capture = tools_test::small_capture();
    std::string text;
    tools::StringSink sink(text);
    tools::JsonEmitter emitter(sink, 0);
    CHECK(tools::decode_lines(capture, emitter).problem_count == 0);
    std::vector<json> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
        lines.push_back(tools_test::parse_strictly(line));
    REQUIRE(lines.size() == 3);
    json all = lines[0];
    for (std::size_t i = 1; i < lines.size(); ++i)
        for (const auto& [id, contents] : lines[i].at("task_snapshots").items())
            all["kcdata_stackshot"]["task_snapshots"][id] = contents;
    CHECK((all == decoded(capture)));
}

TEST_CASE("a sink that takes no more ends the work") {
    struct FullSink final : tools::TextSink {
        std::size_t calls = 0;
        bool write(std::string_view) override {
            ++calls;
            return false;
        }
    } sink;
    Buffer buffer;
    for (std::uint64_t id = 0; id < 100'000; ++id)
        buffer.begin(STACKSHOT_KCCONTAINER_TASK, id).end(id);
    {
        tools::JsonEmitter emitter(sink, 0);
        tools::decode(buffer.finish(), emitter);
    }
    CHECK(sink.calls < 4);
}

TEST_CASE("any cut of a capture decodes without a crash and never as complete") {
    const Bytes whole = tools_test::small_capture();
    decoded(whole);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        tools::CountingSink sink;
        tools::JsonEmitter emitter(sink, 0);
        if (tools::decode(std::span(whole).first(size), emitter).problem_count == 0)
            FAIL("complete at " << size << " of " << whole.size() << " bytes");
    }
}
