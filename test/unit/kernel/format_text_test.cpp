#include "kernel/format_text.hpp"

#include <cstdint>
#include <cstdio>
#include <string>

#include <catch2/catch_test_macros.hpp>

// Formats are passed on here, and wrong ones are tested.
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-security"

namespace {

/// Formats with the kernel's formatter and with the C library's, and returns the first if they
/// agree.
template <typename... Arguments>
std::string both(const char* format, Arguments... arguments) {
    char ours[256];
    char theirs[256];
    const auto length = kernel::format_to(ours, sizeof(ours), format, arguments...);
    const auto expected = std::snprintf(theirs, sizeof(theirs), format, arguments...);
    if (length != static_cast<std::size_t>(expected) || std::string(ours) != theirs)
        return std::string("ours: ") + ours + " theirs: " + theirs;
    return ours;
}

}  // namespace

TEST_CASE("numbers and strings are formatted as printf does") {
    CHECK(both("%d", 0) == "0");
    CHECK(both("%d %i", INT32_MIN, INT32_MAX) == "-2147483648 2147483647");
    CHECK(both("%ld", INT64_MIN) == "-9223372036854775808");
    CHECK(both("%llu", 18446744073709551615ULL) == "18446744073709551615");
    CHECK(both("%zx|%016lx|%08X", std::size_t{0xabc}, 0x1234UL, 0xbeefU) ==
          "abc|0000000000001234|0000BEEF");
    CHECK(both("%hhd %hd %hhu", 257, 65537, 511U) == "1 1 255");
    CHECK(both("[%5d][%-5d][%05d]", -42, -42, -42) == "[  -42][-42  ][-0042]");
    CHECK(both("[%.3d][%8.3u][%.0d]", 7, 7U, 0) == "[007][     007][]");
    CHECK(both("[%s][%10s][%-10s][%.2s]", "abc", "abc", "abc", "abc") ==
          "[abc][       abc][abc       ][ab]");
    CHECK(both("[%*d][%-*d][%.*s]", 6, 1, 6, 2, 3, "abcdef") == "[     1][2     ][abc]");
    CHECK(both("%c%c%%", 'o', 'k') == "ok%");
    CHECK(both("%p", reinterpret_cast<void*>(0xdead0)) == "0xdead0");
    CHECK(both("plain") == "plain");
}

TEST_CASE("text is cut at the buffer's end, NUL-terminated, and its full length is told") {
    char buffer[8];
    CHECK(kernel::format_to(buffer, sizeof(buffer), "%s", "0123456789") == 10);
    CHECK(std::string(buffer) == "0123456");
    CHECK(kernel::format_to(buffer, sizeof(buffer), "%s%d", "0123456", 89) == 9);
    CHECK(std::string(buffer) == "0123456");
    CHECK(kernel::format_to(nullptr, 0, "%d", 123) == 3);
}

TEST_CASE("a null string and an unknown conversion are shown, not followed") {
    char buffer[64];
    const char* const volatile null_text = nullptr;
    const char* const volatile unknown = "a%qb%d";
    kernel::format_to(buffer, sizeof(buffer), "%s", null_text);
    CHECK(std::string(buffer) == "(null)");
    kernel::format_to(buffer, sizeof(buffer), unknown, 1);
    CHECK(std::string(buffer) == "a%qb%d");
}
