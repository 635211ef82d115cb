#pragma once

#include <zlib.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

/// Calls visit(path, bytes) for each of the captures of real kernels, unpacked if they are gzip.
/// Skips the test where there are none. SHARED_DIR is the folder that has them.
template <typename Visit>
void for_each_reference_sample(Visit visit) {
    const auto folder = std::filesystem::path(SHARED_DIR) / "samples";
    if (!std::filesystem::is_directory(folder))
        SKIP("no reference samples in " << folder.string());
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() != ".kcdata")
            continue;
        INFO(entry.path().filename().string());
        gzFile file = gzopen(entry.path().c_str(), "rb");
        REQUIRE(file != nullptr);
        std::vector<std::byte> bytes;
        std::array<std::byte, 4096> block;
        int size = 0;
        while ((size = gzread(file, block.data(), block.size())) > 0)
            bytes.insert(bytes.end(), block.begin(), block.begin() + size);
        gzclose(file);
        REQUIRE(size == 0);
        visit(entry.path(), std::span<const std::byte>(bytes));
        ++count;
    }
    CHECK(count >= 19);
}
