#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tools/encode.hpp"

namespace tools_test {

/// What encode makes of a text that is right.
inline std::vector<std::byte> encoded(const std::string& text) {
    std::vector<std::byte> bytes;
    const auto failure = tools::encode(text, "text", [&bytes](std::span<const std::byte> item) {
        bytes.insert(bytes.end(), item.begin(), item.end());
    });
    if (failure)
        FAIL(failure->text);
    return bytes;
}

}  // namespace tools_test
