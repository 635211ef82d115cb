#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/capture_file.hpp"
#include "tools/decode.hpp"

namespace fs = std::filesystem;

TEST_CASE("every reference sample decodes to what libkdd makes of it") {
    const fs::path folder = fs::path(SHARED_DIR) / "samples";
    if (!fs::is_directory(folder))
        SKIP("no reference samples in " << folder.string());
    std::size_t compared = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() != ".kcdata")
            continue;
        fs::path expected_path = entry.path();
        expected_path.replace_extension(".expected.json");
        INFO(entry.path().filename().string());
        std::ifstream expected_file(expected_path);
        const auto expected = nlohmann::json::parse(expected_file);
        const auto bytes = tools::read_capture(entry.path().string());
        REQUIRE(bytes.ok());
        const tools::Decoded decoded = tools::decode(bytes.value());
        CHECK(decoded.problems.empty());
        std::string text;
        tools::JsonEmitter json(text);
        emit(json, decoded.root);
        CHECK((nlohmann::json::parse(text) == expected));
        ++compared;
    }
    CHECK(compared > 0);
}
