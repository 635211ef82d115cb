#include "kernel/boot_arguments.hpp"

#include <array>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

using kernel::BootArguments;

namespace {

std::vector<std::string> complaints;

void complain(std::string_view key, std::string_view value, const char* why) {
    complaints.push_back(std::string(key) + "=" + std::string(value) + " " + why);
}

BootArguments parse(std::string_view text) {
    complaints.clear();
    return BootArguments(text, complain);
}

}  // namespace

TEST_CASE("boot arguments are found by their whole key, the last one wins") {
    auto arguments = parse("  smp=4 workload=demo smp.x=7\tquiet smp=8 name=\"two words\" empty=");
    CHECK(arguments.number("smp", 1) == 8);
    CHECK(arguments.find("workload") == "demo");
    CHECK(arguments.find("name") == "two words");
    CHECK(arguments.find("empty").value() == "");
    CHECK(arguments.find("quiet").value() == "");
    CHECK_FALSE(arguments.find("work").has_value());
    CHECK_FALSE(arguments.find("demo").has_value());
    CHECK_FALSE(arguments.find("absent"));
    CHECK(complaints.empty());
}

TEST_CASE("numbers are decimal or hexadecimal with a suffix of 1024") {
    auto arguments = parse("a=42 b=0x1F c=16K d=2M e=1G f=18446744073709551615 g=0x10K");
    CHECK(arguments.number("a", 0) == 42);
    CHECK(arguments.number("b", 0) == 31);
    CHECK(arguments.number("c", 0) == 16384);
    CHECK(arguments.number("d", 0) == 2097152);
    CHECK(arguments.number("e", 0) == 1073741824);
    CHECK(arguments.number("f", 0) == UINT64_MAX);
    CHECK(arguments.number("g", 0) == 16384);
    CHECK(complaints.empty());
}

TEST_CASE("a value that cannot be used is reported by name and the fallback taken") {
    auto arguments =
        parse("a=abc b= c=12x d=0x e=18446744073709551616 f=17179869184G g=11 h=maybe i=what j=-1");
    for (const char* key : {"a", "b", "c", "d", "e", "f", "j"})
        CHECK(arguments.number(key, 5) == 5);
    CHECK(arguments.number("g", 5, 1, 10) == 5);
    CHECK(arguments.flag("h", true));
    constexpr std::array<std::string_view, 2> names = {"this", "that"};
    CHECK(arguments.choice("i", names, 1) == 1);
    CHECK(complaints.size() == 10);
    CHECK(complaints.front() == "a=abc is not a number");
    CHECK(complaints.back() == "i=what is not one of its values");
}

TEST_CASE("flags take bare words and the usual values") {
    auto arguments = parse("a b=0 c=on d=off e=yes f=no g=1 h=true i=false");
    for (const char* key : {"a", "c", "e", "g", "h"})
        CHECK(arguments.flag(key, false));
    for (const char* key : {"b", "d", "f", "i"})
        CHECK_FALSE(arguments.flag(key, true));
    CHECK(arguments.flag("z", true));
    CHECK(complaints.empty());
}

TEST_CASE("a word nobody asks for is reported") {
    auto arguments = parse("used=1 mistyped=2 bare");
    CHECK(arguments.number("used", 0) == 1);
    arguments.complain_of_unused();
    CHECK(complaints == std::vector<std::string>{"mistyped=2 is not known", "bare= is not known"});
}

TEST_CASE("odd texts end the walk and nothing else") {
    for (const char* text : {"", " ", "=", "==", "=x", "a=\"", "a=\"b", "\"", "a=\"b\"c"}) {
        auto arguments = parse(text);
        CHECK(arguments.number("missing", 3) == 3);
        arguments.complain_of_unused();
    }
    auto arguments = parse("a=\"b");
    CHECK(arguments.find("a") == "b");
}
