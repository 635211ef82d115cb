#include "tools/capture_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <string_view>

#include "temporary_folder.hpp"

using namespace tools;
using Bytes = std::vector<std::byte>;
using tools_test::read_bytes;
using tools_test::TemporaryFolder;

TEST_CASE("a file is replaced as a whole, with ordinary permissions") {
    const TemporaryFolder folder;
    const std::string path = folder / "out";
    tools_test::write_text(path, "something longer that was there before");
    const mode_t mask = umask(022);
    const std::string_view text = "new";
    CHECK_FALSE(write_file(path, std::as_bytes(std::span(text))));
    umask(mask);
    const Bytes written = read_bytes(path);
    CHECK(std::string_view(reinterpret_cast<const char*>(written.data()), written.size()) == text);
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0644);
    CHECK(folder.file_count() == 1);
}

TEST_CASE("a device is written to, not replaced") {
    const std::string_view text = "new";
    CHECK_FALSE(write_file("/dev/null", std::as_bytes(std::span(text))));
    struct stat status {};
    REQUIRE(stat("/dev/null", &status) == 0);
    CHECK(S_ISCHR(status.st_mode));
}

TEST_CASE("nothing is left behind where nothing could be written") {
    const TemporaryFolder folder;
    const std::string_view text = "new";
    const auto bytes = std::as_bytes(std::span(text));
    CHECK(write_file(folder / "no/such/folder", bytes));
    // A full device.
    CHECK(write_file("/dev/full", bytes));
    CHECK(folder.file_count() == 0);
}
