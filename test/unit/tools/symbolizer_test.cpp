#include "tools/symbolizer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <memory>

#include "temporary_folder.hpp"

using namespace tools;
using tools_test::TemporaryFolder;

namespace {

/// Addresses in the target program and what is right for them, as it says itself.
struct Target {
    unsigned long return_address = 0, function = 0, data = 0;
    unsigned inner_line = 0, outer_line = 0;
};

Target run_target() {
    Target target;
    const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(SYMBOL_TARGET, "r"), pclose);
    REQUIRE(output != nullptr);
    REQUIRE(fscanf(output.get(), "%lx %u %u %lx %lx", &target.return_address, &target.inner_line,
                   &target.outer_line, &target.function, &target.data) == 5);
    return target;
}

std::unique_ptr<Symbolizer> open_target() {
    auto opened = open_elf(SYMBOL_TARGET);
    REQUIRE(opened.ok());
    return std::move(opened.value());
}

}  // namespace

TEST_CASE("an address in an inlined function has that function, its caller, and the line of each") {
    const Target target = run_target();
    const auto symbols = open_target();
    const auto& frames = symbols->frames(target.return_address - 1);
    REQUIRE(frames.size() == 2);
    CHECK(frames[0].function == "target::inlined<int>");
    CHECK(frames[0].inlined);
    CHECK(frames[0].file == "test/unit/tools/symbol_target.cpp");
    CHECK(frames[0].line == target.inner_line);
    CHECK(frames[1].function == "target::(anonymous namespace)::Caller::outer");
    CHECK_FALSE(frames[1].inlined);
    CHECK(frames[1].file == "test/unit/tools/symbol_target.cpp");
    CHECK(frames[1].line == target.outer_line);
}

TEST_CASE("an address outside of the program is unknown") {
    const auto symbols = open_target();
    CHECK(symbols->frames(0x10).empty());
    CHECK_FALSE(symbols->symbol(0x10));
    CHECK(symbols->frames(UINT64_MAX).empty());
}

TEST_CASE("symbols are found with offset and kind") {
    const Target target = run_target();
    const auto symbols = open_target();
    const auto function = symbols->symbol(target.function);
    REQUIRE(function);
    CHECK(function->name == "target::return_address");
    CHECK(function->offset == 0);
    CHECK(function->function);
    const auto data = symbols->symbol(target.data);
    REQUIRE(data);
    CHECK(data->name == "target::table");
    CHECK(data->offset == sizeof(int));
    CHECK_FALSE(data->function);
}

TEST_CASE("the build-id is that of the note") {
    // As test/unit/tools/meson.build tells the linker.
    const std::vector<std::uint8_t> expected = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
                                                0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d,
                                                0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13};
    CHECK(open_target()->build_id() == expected);
}

TEST_CASE("a file that is no ELF file is a failure, and so is none") {
    const TemporaryFolder folder;
    tools_test::write_text(folder / "text", "not an ELF file");
    CHECK_FALSE(open_elf(folder / "text").ok());
    CHECK_FALSE(open_elf(folder / "nothing").ok());
}

TEST_CASE("a function's name is shown without parameters and return type") {
    const struct {
        const char *demangled, *name;
    } cases[] = {
        {"main", "main"},
        {"exception_entry", "exception_entry"},
        {"kernel::Scheduler::pick(kernel::CpuIndex) const", "kernel::Scheduler::pick"},
        {"void kernel::sort<int, (Kind)3>(int*, int (*)(int))", "kernel::sort<int, (Kind)3>"},
        {"std::pair<int, long> make<int>()", "make<int>"},
        {"kernel::(anonymous namespace)::serve(void*)", "kernel::(anonymous namespace)::serve"},
        {"kernel::(anonymous namespace)::plan", "kernel::(anonymous namespace)::plan"},
        {"run(int)::counter", "run(int)::counter"},
        {"X::operator()(int) const", "X::operator()"},
        {"X::operator()() const", "X::operator()"},
        {"X::operator unsigned long() const", "X::operator unsigned long"},
        {"bool X::operator< <int>(X const&)", "X::operator< <int>"},
        {"X::operator<<(int)", "X::operator<<"},
        {"operator new(unsigned long)", "operator new"},
        {"f(int)::{lambda(int, char)#1}::operator()(int, char) const",
         "f(int)::{lambda(int, char)#1}::operator()"},
        {"copy(char*) [clone .isra.0]", "copy"},
        {"", ""},
    };
    for (const auto& [demangled, name] : cases)
        CHECK(without_parameters(demangled) == name);
}
