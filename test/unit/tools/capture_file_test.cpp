#include "tools/capture_file.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <catch2/catch_test_macros.hpp>
#include <string_view>

#include "captures.hpp"
#include "temporary_folder.hpp"

using namespace tools;
using tools_test::Bytes;
using tools_test::read_bytes;
using tools_test::TemporaryFolder;

namespace {

std::string base64(const Bytes& bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        for (std::size_t j = 0; j < 3; ++j)
            group = group << 8 |
                    (i + j < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + j]) : 0);
        for (std::size_t j = 0; j < 4; ++j)
            text += i + j > bytes.size() ? '=' : digits[group >> (18 - 6 * j) & 63];
        if (text.size() % 77 == 76)
            text += '\n';
    }
    return text;
}

}  // namespace

TEST_CASE("a capture is read plain, compressed and as text") {
    const TemporaryFolder folder;
    Bytes capture = tools_test::small_capture();
    tools_test::write_bytes(folder / "plain", capture);
    gzFile file = gzopen((folder / "packed").c_str(), "wb");
    REQUIRE(gzwrite(file, capture.data(), static_cast<unsigned>(capture.size())) > 0);
    REQUIRE(gzclose(file) == Z_OK);
    tools_test::write_text(folder / "text", base64(capture));
    for (const char* name : {"plain", "packed", "text"}) {
        INFO(name);
        const auto read = read_capture(folder / name);
        REQUIRE(read.ok());
        CHECK((read.value() == capture));
    }
}

TEST_CASE("what is no capture is refused, and named") {
    const TemporaryFolder folder;
    tools_test::write_text(folder / "empty", "");
    tools_test::write_text(folder / "text", "This is not a capture. It is some text, though.");
    for (const char* name : {"empty", "text", "nothing"}) {
        const auto read = read_capture(folder / name);
        REQUIRE_FALSE(read.ok());
        CHECK(read.failure().status == exit_failure);
        CHECK(read.failure().text.find(folder / name) != std::string::npos);
    }
    CHECK_FALSE(read_capture(folder / "").ok());
}

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
