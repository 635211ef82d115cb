#include "tools/console_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string_view>

using namespace tools;

namespace {

std::string shown(std::string_view text, bool backspaces = false) {
    return console_text(std::as_bytes(std::span(text)), backspaces);
}

}  // namespace

TEST_CASE("console text reaches the terminal as text only") {
    CHECK(shown("a line\r\n\tand another\n") == "a line\n\tand another\n");
    CHECK(shown("\x1b[2J\a\xff") == "\\x1b[2J\\x07\\xff");
    CHECK(shown("") == "");
}

TEST_CASE("backspaces are kept for who edits a line") {
    CHECK(shown("ab\b \b", true) == "ab\b \b");
    CHECK(shown("ab\b") == "ab\\x08");
}
