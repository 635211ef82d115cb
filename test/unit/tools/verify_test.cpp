// Every rule has a buffer that breaks it and no other; what XNU and this project write keeps them.

#include "tools/verify.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "captures.hpp"
#include "encoded.hpp"
#include "packings.hpp"
#include "temporary_folder.hpp"
#include "test/unit/reference_samples.hpp"

namespace fs = std::filesystem;
using tools::Generation;
using tools_test::encoded;
using tools_test::read_bytes;
using Bytes = std::vector<std::byte>;

namespace {

class Kept final : public tools::VerifyReport {
  public:
    void violation(const tools::Violation& violation) override {
        names.insert(std::string(violation.rule.name));
        lines.push_back(fmt::format("{:#x} {} [{}] {}: {}", violation.offset, violation.item,
                                    violation.where, violation.rule.name, violation.what));
    }
    void buffer(const tools::Verified& buffer) override { buffers.push_back(buffer); }

    std::set<std::string> names{};
    std::vector<std::string> lines{};
    std::vector<tools::Verified> buffers{};
};

Kept verified(std::span<const std::byte> bytes, const tools::VerifyOptions& options = {}) {
    Kept kept;
    REQUIRE_FALSE(tools::verify(bytes, options, kept));
    return kept;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const std::size_t at = text.find(what);
    if (at == text.npos)
        FAIL("no " << what);
    return text.replace(at, what.size(), by);
}

/// A buffer of no kind that has records of its own, around the items.
std::string plain(const std::string& items) {
    return R"([{"type": "KCDATA_BUFFER_BEGIN_XNUPOST_CONFIG"}, )" + items +
           R"(, {"type": "KCDATA_TYPE_BUFFER_END"}])";
}

/// The stackshot of the test data, with one text in place of another.
std::string stackshot(const std::string& what, const std::string& by) {
    static const std::string text = [] {
        const Bytes bytes = read_bytes(KCDATA_DIR "/stackshot.json");
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }();
    return replaced(text, what, by);
}

std::string definition(const std::string& rest) {
    return R"({"type": "KCDATA_TYPE_TYPEDEFINTION", "fields": {"kct_type_identifier": 4160,
        "kct_name": "t", )" +
           rest + "}";
}

/// A compressed buffer around `stream`, hexadecimal.
std::string compressed(const std::string& stream, std::size_t total_out, std::size_t total_in,
                       const std::string& type = "1") {
    const auto number = [](const std::string& name, const std::string& value) {
        return R"({"type": "KCDATA_TYPE_UINT64_DESC", "fields": {"desc": ")" + name +
               R"(", "data": )" + value + "}},\n";
    };
    return "[{\"type\": \"KCDATA_BUFFER_BEGIN_COMPRESSED\"},\n" + number("kcd_c_type", type) +
           number("kcd_c_totalout", std::to_string(total_out)) +
           number("kcd_c_totalin", std::to_string(total_in)) +
           R"({"type": "KCDATA_BUFFER_BEGIN_XNUPOST_CONFIG"}, {"bytes": ")" + stream +
           R"("}, {"type": "KCDATA_TYPE_BUFFER_END"}])";
}

std::string hexadecimal(std::span<const unsigned char> bytes) {
    std::string text;
    for (const unsigned char byte : bytes)
        text += fmt::format("{:02x}", byte);
    return text;
}

/// The items as one zlib stream.
std::vector<unsigned char> deflated(const Bytes& items) {
    uLongf size = compressBound(static_cast<uLong>(items.size()));
    std::vector<unsigned char> stream(size);
    if (compress(stream.data(), &size, reinterpret_cast<const Bytef*>(items.data()),
                 static_cast<uLong>(items.size())) != Z_OK)
        FAIL("compress");
    stream.resize(size);
    return stream;
}

constexpr const char* pid = R"({"type": "KCDATA_TYPE_PID", "fields": {"pid": 1}})";

struct Case {
    const char* rule;
    std::string text;
    tools::VerifyOptions options{};
    /// Broken by what follows from it.
    std::set<std::string> too{};
};

std::vector<Case> cases() {
    const tools::VerifyOptions strict{.generation = {}, .strict = true};
    const tools::VerifyOptions marked{.generation = Generation::marked, .strict = false};
    const tools::VerifyOptions unpadded{.generation = Generation::unpadded, .strict = false};
    const std::string task = R"({"container": 4095, "id": 1, "items": []})";
    const Bytes items = encoded("[" + std::string(pid) + "]");
    const std::vector<unsigned char> stream = deflated(items);
    const std::string digits = hexadecimal(stream);
    return {
        {"begin-missing", std::string("[") + pid + R"(, {"type": "KCDATA_TYPE_BUFFER_END"}])"},
        {"begin-not-empty", R"([{"type": "KCDATA_BUFFER_BEGIN_XNUPOST_CONFIG", "length": 16},
            {"type": "KCDATA_TYPE_BUFFER_END"}])"},
        {"begin-inside", plain(R"({"type": "KCDATA_BUFFER_BEGIN_CRASHINFO"})")},
        {"header-cut", plain(pid) + "x", {}, {"end-missing"}},
        {"item-past-the-end",
         plain(R"({"bytes": "36000000 00ff0000 8000000000000000 01"}, {"zeros": 15}, )" +
               std::string(pid))},
        {"no-item",
         plain(R"({"bytes": "00000000 04000000 ff00000000000000"}, )" + std::string(pid))},
        {"end-missing", R"([{"type": "KCDATA_BUFFER_BEGIN_XNUPOST_CONFIG"}])"},
        {"end-not-empty", R"([{"type": "KCDATA_BUFFER_BEGIN_XNUPOST_CONFIG"},
            {"type": "KCDATA_TYPE_BUFFER_END", "flags": 128}])"},
        {"bytes-behind-end", replaced(plain(pid), "END\"}]", "END\"}, {\"bytes\": \"01\"}]")},
        {"zeros-behind-end", replaced(plain(pid), "END\"}]", "END\"}, {\"zeros\": 9}]"), strict},
        {"type-invalid", plain(R"({"type": "STACKSHOT_KCCONTAINER_TASK"})")},
        {"size-not-rounded",
         plain(R"({"type": "TASK_CRASHINFO_PROC_NAME", "hex": "6100", "padding": "0000"})")},
        {"flags-unknown", plain(R"({"type": "0x7777", "flags": "0x180"})")},
        {"flags-not-marked",
         plain(R"({"type": "KCDATA_TYPE_PID", "fields": {"pid": 1}, "flags": 12})"), marked},
        {"flags-unpadded", R"([{"type": "KCDATA_BUFFER_BEGIN_XNUPOST_CONFIG", "flags": 0},
            {"type": "KCDATA_TYPE_PID", "fields": {"pid": 1}},
            {"type": "KCDATA_TYPE_BUFFER_END"}])",
         unpadded},
        {"definition-marked",
         plain(replaced(definition(R"("kct_elements": []})"), "}}", "}, \"flags\": 136}"))},
        {"padding-too-long", plain(R"({"type": "0x7777", "flags": "0x83"})")},
        {"padding-not-zero", plain(R"({"type": "KCDATA_TYPE_PID", "hex": "01000000",
            "padding": "000000000000000000000001"})"),
         strict},
        {"array-contradiction", plain(R"({"array": "0x7777", "elements": [{"hex":
            "00000000000000000000000000000000"}], "count": 3})")},
        {"array-legacy", plain(R"({"array": "STACKSHOT_KCTYPE_DONATING_PIDS",
            "type": "KCDATA_TYPE_ARRAY", "elements": [1]})")},
        {"container-begin-size",
         plain(R"({"type": "KCDATA_TYPE_CONTAINER_BEGIN", "flags": 1, "hex": "ff0f0000",
            "padding": "00000000000000000000000000000000000000000000000000000000"},
            {"container_end": 1})")},
        {"container-end-size", plain(R"({"container": 4095, "id": 1},
            {"container_end": 1, "hex": "00000000000000000000000000000000"})")},
        {"container-end-outside", plain(R"({"container_end": 1})")},
        {"container-end-of-another",
         plain(R"({"container": 4095, "id": 1}, {"container": 4094, "id": 2},
            {"container_end": 1})")},
        {"container-not-ended", plain(R"({"container": 4095, "id": 1})")},
        {"container-id-repeated", plain(task + ", " + task)},
        {"record-cut", plain(R"({"type": "KCDATA_TYPE_TIMEBASE", "hex": "0102030405"})")},
        {"record-repeated", plain(std::string(pid) + ", " + pid)},
        {"record-not-array",
         stackshot(R"({"array": "STACKSHOT_KCTYPE_DONATING_PIDS", "elements": [1]})",
                   R"({"type": "STACKSHOT_KCTYPE_DONATING_PIDS", "fields":
                      {"donating_pids": 1}})")},
        {"description-too-long", plain(R"({"type": "KCDATA_TYPE_UINT32_DESC", "fields":
            {"desc": "thirty-two characters, not a NUL", "data": 1}})")},
        {"string-not-ended", stackshot(R"("boot_args": ""})", R"("boot_args": "x"}, "length": 1)"),
         strict},
        {"definition-short", plain(R"({"type": "KCDATA_TYPE_TYPEDEFINTION", "hex": "0010"})")},
        {"definition-count", plain(definition(R"("kct_num_elements": 1})"))},
        {"definition-field",
         plain(definition(R"("kct_num_elements": 1, "kct_elements": [{"kcs_name": "f"}]})"))},
        {"compressed-head",
         compressed(digits, stream.size(), items.size(), "2"),
         {},
         {"item-past-the-end", "end-missing"}},
        {"compressed-stream", compressed("00" + digits.substr(2), stream.size(), items.size())},
        {"compressed-totals", compressed(digits, stream.size(), items.size() + 16)},
        {"record-misplaced",
         stackshot(R"({"type": "STACKSHOT_KCTYPE_THREAD_POLICY_VERSION", "fields":)",
                   R"({"type": "STACKSHOT_KCTYPE_ASID", "fields": {"ts_asid": 1}},
                      {"type": "STACKSHOT_KCTYPE_THREAD_POLICY_VERSION", "fields":)")},
        {"record-missing",
         stackshot(
             R"({"type": "KCDATA_TYPE_MACH_ABSOLUTE_TIME", "fields": {"mach_absolute_time": 1000000}},)",
             "")},
        {"record-order",
         stackshot(R"({"type": "STACKSHOT_KCTYPE_KERN_PAGE_SIZE", "fields":)",
                   R"({"type": "STACKSHOT_KCTYPE_JETSAM_LEVEL", "fields": {"jetsam_level": 1}},
                      {"type": "STACKSHOT_KCTYPE_KERN_PAGE_SIZE", "fields":)"),
         strict},
        {"record-of-delta",
         stackshot(R"({"type": "KCDATA_TYPE_MACH_ABSOLUTE_TIME", "fields":)",
                   R"({"type": "STACKSHOT_KCTYPE_DELTA_SINCE_TIMESTAMP", "fields": {}},
                      {"type": "KCDATA_TYPE_MACH_ABSOLUTE_TIME", "fields":)")},
        {"record-id", stackshot(R"("ths_thread_id": 100)", R"("ths_thread_id": 101)")},
        {"description-type",
         stackshot(R"({"type": "KCDATA_TYPE_UINT64_DESC", "fields": {"desc": "stackshot_tries")",
                   R"({"type": "KCDATA_TYPE_UINT32_DESC", "fields": {"desc": "stackshot_tries")"),
         strict},
    };
}

}  // namespace

TEST_CASE("what breaks one rule is told by the name of this rule, and no other") {
    std::set<std::string> tested;
    for (const Case& each : cases()) {
        INFO(each.rule);
        std::string text = each.text;
        const bool cut = text.ends_with('x');
        if (cut)
            text.pop_back();
        Bytes bytes = encoded(text);
        // Half of the header of BUFFER_END.
        if (cut)
            bytes.resize(bytes.size() - 8);
        const Kept kept = verified(bytes, each.options);
        for (const std::string& line : kept.lines)
            UNSCOPED_INFO(line);
        std::set<std::string> expected = each.too;
        expected.insert(each.rule);
        CHECK((kept.names == expected));
        tested.insert(each.rule);
    }
    for (const tools::Rule& rule : tools::rules()) {
        INFO(rule.name);
        CHECK(tested.contains(std::string(rule.name)));
    }
    CHECK(tools::rules().size() == tested.size());
}

TEST_CASE("rules that not every release keeps are checked only if asked for") {
    for (const Case& each : cases()) {
        if (!each.options.strict)
            continue;
        INFO(each.rule);
        CHECK(verified(encoded(each.text)).lines.empty());
    }
}

TEST_CASE("a violation says where it is: offset, item, containers, rule and what is wrong") {
    const Kept kept =
        verified(encoded(stackshot(R"("ths_thread_id": 100)", R"("ths_thread_id": 101)")));
    REQUIRE(kept.lines.size() == 1);
    CHECK(kept.lines[0] ==
          "0x3a0 19 [task_snapshots/0/thread_snapshots/100] record-id: "
          "ths_thread_id is 101 in container 100");
    const Kept missing = verified(encoded(stackshot(
        R"({"type": "KCDATA_TYPE_MACH_ABSOLUTE_TIME", "fields": {"mach_absolute_time": 1000000}},)",
        "")));
    REQUIRE(missing.lines.size() == 1);
    CHECK(missing.lines[0] == "0x0 0 [] record-missing: KCDATA_TYPE_MACH_ABSOLUTE_TIME");
}

TEST_CASE("a stackshot in the order of the last release keeps every rule") {
    const tools::VerifyOptions all{.generation = Generation::marked, .strict = true};
    const Kept kept = verified(read_bytes(KCDATA_DIR "/stackshot.kcdata"), all);
    for (const std::string& line : kept.lines)
        UNSCOPED_INFO(line);
    CHECK(kept.lines.empty());
    REQUIRE(kept.buffers.size() == 1);
    CHECK(kept.buffers[0].items == 42);
}

TEST_CASE("the generation is found out, and is the lowest of those mixed") {
    const auto generation = [](const char* name) {
        const Kept kept = verified(read_bytes(std::string(KCDATA_DIR "/") + name + ".kcdata"));
        REQUIRE_FALSE(kept.buffers.empty());
        return kept.buffers.back().generation;
    };
    CHECK(generation("no_padding_info") == Generation::unpadded);
    CHECK(generation("padding_count_unmarked") == Generation::counted);
    CHECK(generation("padding_marked") == Generation::marked);
    CHECK(generation("type_definitions") == Generation::marked);
    const Kept mixed = verified(
        encoded(plain(R"({"type": "KCDATA_TYPE_PID", "fields": {"pid": 1}, "flags": 12})")));
    CHECK(mixed.lines.empty());
    CHECK(mixed.buffers.at(0).generation == Generation::counted);
}

TEST_CASE("what is inflated goes through a file, up to a limit") {
    const std::size_t size = std::size_t{4} << 20;
    Bytes large =
        encoded(plain(R"({"type": "0x7777", "hex": "00000000000000000000000000000000"})"));
    const std::size_t at = 2 * sizeof(kcdata::ItemHeader);
    large.insert(large.begin() + static_cast<std::ptrdiff_t>(at), size, std::byte{0});
    const auto told = static_cast<std::uint32_t>(size + kcdata::alignment);
    std::memcpy(large.data() + sizeof(kcdata::ItemHeader) + sizeof(told), &told, sizeof(told));
    const Bytes bytes = tools_test::compressed(large);
    CHECK(verified(bytes).lines.empty());
    CHECK((verified(bytes, {.max_inflated = size}).names ==
           std::set<std::string>{"compressed-totals"}));

    const tools_test::TemporaryFolder folder;
    REQUIRE(setenv("TMPDIR", (folder / "nothing").c_str(), 1) == 0);
    Kept kept;
    const auto failure = tools::verify(bytes, {}, kept);
    REQUIRE(unsetenv("TMPDIR") == 0);
    REQUIRE(failure);
    CHECK(failure->text.find(folder / "nothing") != std::string::npos);
}

TEST_CASE("captures of all generations of XNU pass") {
    for_each_reference_sample([](const fs::path& path, std::span<const std::byte> bytes) {
        const Kept kept = verified(bytes);
        for (const std::string& line : kept.lines)
            UNSCOPED_INFO(line);
        // Put together by hand, not by a kernel.
        if (path.stem() == "nested-sample")
            CHECK((kept.names == std::set<std::string>{"size-not-rounded"}));
        else
            CHECK(kept.lines.empty());
    });
}
