#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>

#include "strict_json.hpp"
#include "tools/decode.hpp"
#include "tools/input.hpp"

namespace fs = std::filesystem;

namespace {

/// Compares what every NAME.kcdata of the folder decodes to with its NAME.expected.json; returns
/// how many there are.
std::size_t compare_with_expected(const fs::path& folder) {
    std::size_t compared = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() != ".kcdata")
            continue;
        fs::path expected_path = entry.path();
        expected_path.replace_extension(".expected.json");
        INFO(entry.path().filename().string());
        std::ifstream expected_file(expected_path);
        const auto expected = nlohmann::json::parse(expected_file);
        const auto input = tools::Input::open(entry.path().string());
        REQUIRE(input.ok());
        REQUIRE(input.value().buffers().size() == 1);
        CHECK(input.value().problems().empty());
        std::string text;
        tools::StringSink sink(text);
        tools::JsonEmitter json(sink);
        CHECK(tools::decode(input.value().buffers()[0].bytes, json).problems.empty());
        CHECK((tools_test::parse_strictly(text) == expected));
        ++compared;
    }
    return compared;
}

}  // namespace

TEST_CASE("every reference sample decodes to what libkdd makes of it") {
    const fs::path folder = fs::path(SHARED_DIR) / "samples";
    if (!fs::is_directory(folder))
        SKIP("no reference samples in " << folder.string());
    CHECK(compare_with_expected(folder) > 0);
}

// test/data/kcdata/make.py makes and decodes them by the reference tables.
TEST_CASE("every buffer of our own decodes to what libkdd makes of it") {
    CHECK(compare_with_expected(KCDATA_DIR) > 30);
}
