#include "tools/stackshot_flags.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace tools;

TEST_CASE("flags are numbers and names, in any case and with or without STACKSHOT_") {
    // The values of XNU's debug.h.
    CHECK(parse_stackshot_flags("0x10000").value() == 0x10000);
    CHECK(parse_stackshot_flags("65536").value() == 0x10000);
    CHECK(parse_stackshot_flags("STACKSHOT_KCDATA_FORMAT").value() == 0x10000);
    CHECK(parse_stackshot_flags("kcdata_format").value() == 0x10000);
    CHECK(parse_stackshot_flags("kcdata_format|Collect_Delta_Snapshot,0x400").value() == 0x50400);
}

TEST_CASE("a word that is no flag is named") {
    for (const char* text :
         {"", "no_such_flag", "0x", "12x", "kcdata_format,", "-1", "0x10000000000000000"}) {
        CAPTURE(text);
        const auto flags = parse_stackshot_flags(text);
        REQUIRE_FALSE(flags.ok());
        CHECK(flags.failure().status == exit_usage);
    }
    CHECK(parse_stackshot_flags("kcdata_format,nonsense").failure().text.starts_with("nonsense: "));
}
