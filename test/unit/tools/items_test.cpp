// Items as text and back: the buffers of test/data/kcdata (made by its make.py, which knows the
// format by the reference tables only), the reference samples, and what is wrong in texts.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "encoded.hpp"
#include "temporary_folder.hpp"
#include "test/unit/reference_samples.hpp"
#include "tools/item_json.hpp"
#include "tools/item_text.hpp"

namespace fs = std::filesystem;
using tools_test::encoded;
using tools_test::read_bytes;
using tools_test::TemporaryFolder;
using tools_test::write_bytes;
using Bytes = std::vector<std::byte>;

namespace {

std::string read_text(const fs::path& path) {
    const Bytes bytes = read_bytes(path.string());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string json_of(std::span<const std::byte> bytes) {
    std::string text;
    tools::StringSink sink(text);
    tools::ItemJsonWriter writer(sink);
    writer.begin();
    tools::ItemWalk walk(bytes);
    tools::Stretch stretch;
    while (walk.next(stretch))
        writer.stretch(stretch);
    writer.end(walk.problem_at_end());
    return text;
}

struct Text {
    std::string lines{};
    std::size_t problems = 0;
};

Text text_of(std::span<const std::byte> bytes) {
    Text text;
    tools::StringSink sink(text.lines);
    {
        tools::ItemTextWriter writer(sink);
        tools::ItemWalk walk(bytes);
        tools::Stretch stretch;
        while (walk.next(stretch))
            writer.stretch(stretch);
        text.problems = writer.problems();
    }
    return text;
}

std::string failure_of(const std::string& text) {
    const auto failure = tools::encode(text, "a.json", [](std::span<const std::byte>) {});
    return failure ? failure->text : "no failure";
}

std::vector<fs::path> texts_in(const fs::path& folder) {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".json" &&
            !entry.path().stem().string().ends_with(".expected"))
            paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    return paths;
}

fs::path with_extension(fs::path path, const char* extension) {
    return path.replace_extension(extension);
}

std::size_t count_of(const std::string& text, const std::string& what) {
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1))
        ++count;
    return count;
}

bool holds(const std::string& text, const std::string& what) {
    return text.find(what) != text.npos;
}

}  // namespace

TEST_CASE("a text makes the bytes that the format's rules make of it") {
    std::size_t count = 0;
    for (const fs::path& folder : {fs::path(KCDATA_DIR), fs::path(KCDATA_DIR) / "damaged"}) {
        for (const fs::path& path : texts_in(folder)) {
            INFO(path.filename().string());
            CHECK(
                (encoded(read_text(path)) == read_bytes(with_extension(path, ".kcdata").string())));
            ++count;
        }
    }
    CHECK(count > 50);
}

TEST_CASE("the text of any buffer makes the same bytes again") {
    for (const fs::path& folder : {fs::path(KCDATA_DIR), fs::path(KCDATA_DIR) / "damaged"}) {
        for (const fs::path& path : texts_in(folder)) {
            INFO(path.filename().string());
            const Bytes bytes = read_bytes(with_extension(path, ".kcdata").string());
            const std::string text = json_of(bytes);
            CHECK(nlohmann::json::accept(text));
            CHECK((encoded(text) == bytes));
            // Cut anywhere, and with any byte another one.
            for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 32) {
                const auto cut = std::span(bytes).first(size);
                CHECK((encoded(json_of(cut)) == Bytes(cut.begin(), cut.end())));
                Bytes changed = bytes;
                changed[size] ^= std::byte{0x11};
                CHECK((encoded(json_of(changed)) == changed));
            }
        }
    }
}

TEST_CASE("the text of every reference sample makes the same bytes again") {
    for_each_reference_sample([](const fs::path&, std::span<const std::byte> bytes) {
        const std::string text = json_of(bytes);
        CHECK(std::ranges::equal(encoded(text), bytes));
        CHECK_FALSE(holds(text, "\"note\""));
        CHECK(text_of(bytes).problems == 0);
    });
}

TEST_CASE("the text marks what is damaged where it stands, and goes on behind it") {
    // A size of 15 where 16 bytes follow.
    const Bytes bytes = read_bytes(KCDATA_DIR "/damaged/off_the_grid.kcdata");
    const Text text = text_of(bytes);
    CHECK(text.problems == 1);
    CHECK(holds(text.lines, "0000002f  !! "));
    CHECK(holds(text.lines, "00000030  STACKSHOT_KCTYPE_KERN_PAGE_SIZE (0x910)"));
    CHECK(holds(text.lines, "kernel_page_size  4096 (0x1000)"));
    const std::string json = json_of(bytes);
    CHECK(count_of(json, "\"note\"") == 1);
    CHECK(holds(json, "{\"type\":\"STACKSHOT_KCTYPE_KERN_PAGE_SIZE\","));

    for (const char* name :
         {"container_not_ended", "end_missing", "container_end_outside", "container_begin_short",
          "item_past_the_end", "array_count_does_not_divide", "nested_buffer_without_end"}) {
        INFO(name);
        const Bytes damaged = read_bytes(std::string(KCDATA_DIR "/damaged/") + name + ".kcdata");
        CHECK(count_of(json_of(damaged), "\"note\"") == 1);
    }
}

TEST_CASE("the text shows offsets, nesting, names of flags, elements, tails and padding") {
    const Text text = text_of(read_bytes(KCDATA_DIR "/stackshot.kcdata"));
    CHECK(text.problems == 0);
    CHECK(holds(text.lines,
                "00000000  KCDATA_BUFFER_BEGIN_STACKSHOT (0x59a25807)  size 0  flags "
                "0x80: pad 0  KCDATA_FLAGS_STRUCT_HAS_PADDING\n"));
    CHECK(
        holds(text.lines,
              "00000020    +0x0   desc  \"stackshot_in_flags\"\n"
              "00000040    +0x20  data  17104900 (0x1050004)  STACKSHOT_GET_GLOBAL_MEM_STATS | "));
    CHECK(holds(text.lines,
                "  KCDATA_TYPE_CONTAINER_BEGIN (0x13)  size 16  "
                "STACKSHOT_KCCONTAINER_TASK (0x903)  id 0\n"));
    // Two containers around.
    CHECK(holds(text.lines, "      STACKSHOT_KCTYPE_THREAD_SNAPSHOT (0x906)  size 128"));
    CHECK(
        holds(text.lines, "ths_ss_flags                 8194 (0x2002)  kKernel64_p | kThreadMain"));
    CHECK(holds(text.lines, "2 x STACKSHOT_KCTYPE_KERN_STACKLR64 (0x914), 8 bytes each  pad 0"));
    CHECK(holds(text.lines, "[1]  lr  18446744005109628928 (0xfffffff007204000)"));
    CHECK(holds(text.lines,
                "owner         18446744073709551611 (0xfffffffffffffffb)  "
                "STACKSHOT_WAITOWNER_INTRANSIT"));

    CHECK(holds(text_of(read_bytes(KCDATA_DIR "/long_structs.kcdata")).lines,
                "8 bytes behind the fields:\n"));
    CHECK(holds(text_of(read_bytes(KCDATA_DIR "/padding_not_zero.kcdata")).lines,
                "01 02 03 04 05 06 07 08 09 0a 0b 0c"));
    const std::string behind = text_of(read_bytes(KCDATA_DIR "/bytes_behind.kcdata")).lines;
    CHECK(holds(behind, "bytes behind the end of the buffer\n"));
    CHECK(holds(behind, "de ad be ef 00 00 00 00 01"));
    CHECK(holds(behind, "*\n"));
}

TEST_CASE("a text that is wrong is refused with line, column, path and reason") {
    CHECK(failure_of("") != "no failure");
    CHECK(failure_of("{}") == "a.json:1:1: the text is not an array of items");
    CHECK(failure_of("7") == "a.json:1:1: the text is not an array of items");
    CHECK(failure_of("[] []").starts_with("a.json:1:4: "));
    CHECK(failure_of("[\n  {\"type\": 1,,}\n]").starts_with("a.json:2:14: "));
    CHECK(failure_of("[{\"type\": 1, \"type\": 2}]") ==
          "a.json:1:14: the key \"type\" is there twice");
    CHECK(failure_of("[5]") == "a.json:1:2: [0]: an item is an object");
    CHECK(holds(failure_of("[{}]"), "a.json:1:2: [0]: an item has one of the keys "));

    const auto item = [](const std::string& text) { return failure_of("[\n" + text + "\n]"); };
    CHECK(item(R"({"type": "TASK_SNAPSHOT"})") ==
          "a.json:2:10: [0].type: no type is called \"TASK_SNAPSHOT\"");
    CHECK(item(R"({"type": 4294967296})") ==
          "a.json:2:10: [0].type: 4294967296 is above 4294967295");
    CHECK(item(R"({"type": 5, "lenght": 6})")
              .starts_with("a.json:2:23: [0]: \"lenght\" has no meaning here; "));
    CHECK(item(R"({"type": "STACKSHOT_KCTYPE_ASID", "fields": {"ts_asd": 1}})") ==
          "a.json:2:56: [0].fields.ts_asd: STACKSHOT_KCTYPE_ASID has no field \"ts_asd\"");
    CHECK(item(R"({"type": "0x7777", "fields": {"x": 1}})") ==
          "a.json:2:36: [0].fields.x: 0x7777 has no field \"x\"; give \"hex\"");
    CHECK(item(R"({"type": "STACKSHOT_KCTYPE_ASID", "fields": {"ts_asid": 4294967296}})") ==
          "a.json:2:57: [0].fields.ts_asid: 4294967296 does not fit into 32 bits without a sign");
    CHECK(item(R"({"type": "STACKSHOT_KCTYPE_ASID", "fields": {"ts_asid": -1}})") ==
          "a.json:2:57: [0].fields.ts_asid: -1 does not fit into 32 bits without a sign");
    CHECK(item(R"({"type": "KCDATA_TYPE_PID", "fields": {"pid": 2147483648}})") ==
          "a.json:2:47: [0].fields.pid: 2147483648 does not fit into 32 bits");
    CHECK(item(R"({"type": "KCDATA_TYPE_PID", "fields": {"pid": 1.5}})") ==
          "a.json:2:47: [0].fields.pid: an integer is needed");
    CHECK(
        item(
            R"({"type": "STACKSHOT_KCTYPE_THREAD_SNAPSHOT", "fields": {"ths_state": "SS_TH_WAT"}})")
            .ends_with("[0].fields.ths_state: no value of this field is called \"SS_TH_WAT\""));
    CHECK(item(R"({"type": "KCDATA_TYPE_TIMEBASE", "hex": "0g"})") ==
          "a.json:2:41: [0].hex: \"g\" is no hexadecimal digit");
    CHECK(item(R"({"type": "KCDATA_TYPE_TIMEBASE", "hex": "0"})") ==
          "a.json:2:41: [0].hex: half a byte: hexadecimal digits come in pairs");
    CHECK(item(R"({"type": "KCDATA_TYPE_TIMEBASE", "hex": "", "fields": {}})")
              .ends_with("only one of fields, hex and items can be the payload"));
    CHECK(item(R"({"type": "STACKSHOT_KCTYPE_TASK_SNAPSHOT",
  "fields": {"ts_p_comm": "a name that has more than thirty-two characters"}})") ==
          "a.json:3:27: [0].fields.ts_p_comm: 47 bytes are more than the 32 of the field");
    CHECK(item(R"({"container": "STACKSHOT_KCCONTAINER_TASK", "items": []})")
              .ends_with("[0]: a container has an \"id\""));
    CHECK(item(R"({"container": 5, "id": 1, "items": [{"type": 1}, {"typ": 2}]})")
              .starts_with("a.json:2:50: [0].items[1]: "));
    CHECK(item(R"({"array": "STACKSHOT_KCTYPE_DONATING_PIDS", "elements": [1, "x"]})") ==
          "a.json:2:61: [0].elements[1]: no value of this field is called \"x\"");
    CHECK(item(R"({"array": 5, "elements": [{"hex": "00"}, {"hex": "0000"}]})")
              .ends_with("[0].elements[1]: not as long as the elements before"));
    CHECK(item(R"({"array": "STACKSHOT_KCTYPE_THREAD_WAITINFO", "elements": [1]})")
              .ends_with("[0].elements[0]: an element is an object of fields, or {\"hex\": ...}"));
    CHECK(item(R"({"type": 3, "length": 1, "tail": "0000"})")
              .ends_with("[0]: the tail alone is longer"));
    // What came before is not lost.
    std::size_t size = 0;
    CHECK(tools::encode("[{\"type\": 1}, {\"type\": \"x\"}]", "a.json",
                        [&size](std::span<const std::byte> bytes) { size += bytes.size(); })
              ->text == "a.json:1:24: [1].type: no type is called \"x\"");
    CHECK(size == 16);
    CHECK(holds(failure_of(std::string(200, '[')), "too many objects and arrays"));

    // A few characters do not make gigabytes.
    CHECK(item(R"({"type": 7, "length": 4294967295})") ==
          "a.json:2:23: [0]: more than 268435456 bytes to be filled up");
    CHECK(item(R"({"array": 7, "elements": [{"hex": ""}], "element_size": 4294967295})") ==
          "a.json:2:57: [0].elements[0]: more than 268435456 bytes to be filled up");
    CHECK(item(R"({"array": 7, "elements": [{"hex": ""}, {"hex": ""}, {"hex": ""}],
                   "element_size": 134217728})") ==
          "a.json:3:36: [0].elements[2]: more than 268435456 bytes to be filled up");
    CHECK(item(R"({"type": 7, "hex": "ff", "length": 4000})") == "no failure");
}

TEST_CASE("text that is UTF-8 is told as text, other bytes as such") {
    const auto name = [](const std::string& value) {
        return encoded(R"([{"type": "STACKSHOT_KCTYPE_THREAD_NAME", "fields": {"pth_name": )" +
                       value + "}}]");
    };
    CHECK(holds(json_of(name("\"gr\u00fc\u00df \\\"\\t\\\\ \xe2\x82\xac\"")),
                "\"pth_name\":\"gr\u00fc\u00df \\\"\\t\\\\ \xe2\x82\xac\""));
    for (const char* bytes : {"ff", "c3", "eda080", "01", "610062", "7f"}) {
        INFO(bytes);
        const Bytes made = name(std::string("{\"hex\": \"") + bytes + "\"}");
        CHECK(holds(json_of(made), std::string("{\"hex\":\"") + bytes));
        CHECK((encoded(json_of(made)) == made));
    }
}

TEST_CASE("long payloads are told in pieces") {
    Bytes bytes = encoded(R"([{"type": "KCDATA_BUFFER_BEGIN_STACKSHOT"},
        {"type": "0x7777", "length": 100000, "tail": "01"}, {"type": "KCDATA_TYPE_BUFFER_END"}])");
    const std::string text = json_of(bytes);
    CHECK(count_of(text, "\",\"00000000") >= 3);
    CHECK((encoded(text) == bytes));
}

TEST_CASE("a text may have comments, numbers in hexadecimal, and names of flags") {
    const Bytes bytes = encoded(R"([
        // a comment
        {"type": "0x925", "fields": {"ts_asid": "0x10"}}, /* another */
        {"type": "STACKSHOT_KCTYPE_PORTLABEL", "note": "signed",
         "fields": {"portlabel_id": "STACKSHOT_PORTLABELID_MISSING",
                    "portlabel_flags": " STACKSHOT_PORTLABEL_THROTTLED | 0x100"}}
    ])");
    const Bytes expected = encoded(R"([{"bytes": [
        "25090000 10000000 8c00000000000000", "10000000 000000000000000000000000",
        "35090000 10000000 8b00000000000000", // -1, 0x102 and 0 in 5 bytes
        "ffff 0201 00 0000000000000000000000"]}])");
    CHECK((bytes == expected));
}
