#include "tools/decode.hpp"

#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "captures.hpp"
#include "kcdata/format.hpp"
#include "kcdata/types.hpp"

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

json decoded(const Bytes& buffer, std::size_t problems = 0) {
    const tools::Decoded result = tools::decode(buffer);
    for (const std::string& problem : result.problems)
        UNSCOPED_INFO(problem);
    CHECK(result.problems.size() == problems);
    std::string text;
    tools::JsonEmitter emitter(text);
    emit(emitter, result.root);
    return json::parse(text);
}

json stackshot(const Bytes& buffer, std::size_t problems = 0) {
    return decoded(buffer, problems).at("kcdata_stackshot");
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
    const std::string_view text(reinterpret_cast<const char*>(inner.data()), inner.size());
    CHECK(decoded(Buffer(KCDATA_BUFFER_BEGIN_CRASHINFO)
                      .item(KCDATA_TYPE_NESTED_KCDATA, 0, text)
                      .finish()) == json{{"kcdata_crashinfo", {{"kcdata_reason", {{"pid", 9}}}}}});
}

TEST_CASE("buffers nested without end are refused") {
    Bytes buffer = Buffer().finish();
    for (int level = 0; level < 20; ++level) {
        const std::string_view text(reinterpret_cast<const char*>(buffer.data()), buffer.size());
        buffer = Buffer().item(KCDATA_TYPE_NESTED_KCDATA, 0, text).finish();
    }
    decoded(buffer, 1);
}

TEST_CASE("a type definition describes later items, and is printed with its fields") {
    const auto field = [](std::uint8_t flags, std::uint8_t type, std::uint16_t offset,
                          std::uint32_t size, const char* name) {
        return bytes_of(flags) + bytes_of(type) + bytes_of(offset) + bytes_of(size) +
               padded(name, 32);
    };
    const auto definition = [&](std::uint32_t id, std::uint32_t count, const char* name) {
        return bytes_of(id) + bytes_of(count) + padded(name, 32);
    };
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

TEST_CASE("what stands before the damage is decoded, and the damage has its offset") {
    Bytes cut = Buffer()
                    .begin(STACKSHOT_KCCONTAINER_TASK, 1)
                    .item(STACKSHOT_KCTYPE_ASID, 0, bytes_of(std::uint32_t{1}))
                    .item(0x7777, 0, std::string(100, 'x'))
                    .unfinished();
    const std::size_t last_item = cut.size() - 100 - sizeof(ItemHeader);
    cut.resize(cut.size() - 1);
    const tools::Decoded result = tools::decode(cut);
    REQUIRE(result.problems.size() == 1);
    CHECK(result.problems[0].starts_with("offset " + fmt::format("{:#x}", last_item) + ":"));
    CHECK(stackshot(cut, 1) == json{{"task_snapshots", {{"1", {{"ts_asid", 1}}}}}});
}

TEST_CASE("decoding goes on behind an array that contradicts itself") {
    CHECK(stackshot(Buffer()
                        .array(STACKSHOT_KCTYPE_KERN_STACKLR64, 3, "12345678")
                        .item(STACKSHOT_KCTYPE_ASID, 0, bytes_of(std::uint32_t{1}))
                        .finish(),
                    1) == json{{"ts_asid", 1}});
}

TEST_CASE("a buffer without decoded form is refused, and so is what is none") {
    const auto nothing = [](const Bytes& buffer) { CHECK(decoded(buffer, 1) == json::object()); };
    nothing(Buffer(KCDATA_BUFFER_BEGIN_COMPRESSED).finish());
    nothing(Buffer(KCDATA_BUFFER_BEGIN_BTINFO).finish());
    nothing(Buffer(0x12345678).finish());
    nothing({});
}

TEST_CASE("any cut of a capture decodes without a crash and never as complete") {
    const Bytes whole = tools_test::small_capture();
    decoded(whole);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const tools::Decoded result = tools::decode(std::span(whole).first(size));
        if (result.problems.empty())
            FAIL("complete at " << size << " of " << whole.size() << " bytes");
    }
}
