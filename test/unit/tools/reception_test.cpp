#include "tools/reception.hpp"

#include <catch2/catch_test_macros.hpp>

#include "captures.hpp"
#include "temporary_folder.hpp"

using namespace tools;
using tools_test::Bytes;
using tools_test::read_bytes;
using tools_test::TemporaryFolder;

namespace {

ReceptionOptions options_for(const TemporaryFolder& folder, unsigned count = 1) {
    return {.output = folder / "out.kcdata", .hide_console = true, .count = count};
}

/// Another capture than small_capture(): the name on the line tells them apart.
Bytes other_capture() {
    Bytes capture = tools_test::small_capture();
    capture[capture.size() / 2] ^= std::byte{1};
    return capture;
}

Bytes joined(Bytes first, const Bytes& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

}  // namespace

TEST_CASE("a capture is written as it was sent, and the log holds every byte of the line") {
    const TemporaryFolder folder;
    const Bytes capture = tools_test::small_capture();
    const Bytes line = tools_test::line_with(capture);
    ReceptionOptions options = options_for(folder);
    options.log = folder / "uart.log";
    Reception reception(options);
    REQUIRE_FALSE(reception.open());
    for (std::size_t i = 0; i < line.size(); i += 7)
        reception.feed(std::span(line).subspan(i, std::min<std::size_t>(7, line.size() - i)));
    CHECK(reception.done());
    CHECK(reception.finish() == exit_complete);
    CHECK(read_bytes(folder / "out.kcdata") == capture);
    CHECK(read_bytes(folder / "uart.log") == line);
    CHECK(folder.file_count() == 2);
}

TEST_CASE("further captures go to numbered files") {
    const TemporaryFolder folder;
    Reception reception(options_for(folder, 2));
    reception.feed(tools_test::line_with(tools_test::small_capture()));
    CHECK_FALSE(reception.done());
    reception.feed(tools_test::line_with(other_capture()));
    CHECK(reception.done());
    CHECK(reception.finish() == exit_complete);
    CHECK(read_bytes(folder / "out.kcdata") == tools_test::small_capture());
    CHECK(read_bytes(folder / "out-2.kcdata") == other_capture());
    CHECK(Reception::file_name("a.b/c", 1) == "a.b/c-2");
    CHECK(Reception::file_name("-", 5) == "-");
}

TEST_CASE("a capture that was not wanted any more is not written") {
    const TemporaryFolder folder;
    Reception reception(options_for(folder, 1));
    reception.feed(joined(tools_test::line_with(tools_test::small_capture()),
                          tools_test::line_with(other_capture())));
    CHECK(reception.finish() == exit_complete);
    CHECK(folder.file_count() == 1);
}

TEST_CASE("an incomplete capture is never written as one: only its beginning, under another name") {
    const Bytes capture = tools_test::small_capture();
    const Bytes line = tools_test::line_with(capture, 64);
    for (const unsigned count : {0u, 1u}) {
        const TemporaryFolder folder;
        Reception reception(options_for(folder, count));
        Bytes damaged = line;
        damaged[damaged.size() / 2] ^= std::byte{0x40};
        reception.feed(damaged);
        CHECK(reception.finish() == exit_damaged);
        const Bytes partial = read_bytes(folder / "out.kcdata.partial");
        CHECK(folder.file_count() == 1);
        REQUIRE_FALSE(partial.empty());
        REQUIRE(partial.size() < capture.size());
        CHECK(std::equal(partial.begin(), partial.end(), capture.begin()));
    }
}

TEST_CASE("whatever one byte of the line becomes, what is written is what was sent") {
    const Bytes capture = tools_test::small_capture();
    const Bytes line = tools_test::line_with(capture, 256);
    const TemporaryFolder folder;
    for (std::size_t i = 0; i < line.size(); i += 37) {
        std::filesystem::remove(folder / "out.kcdata");
        Reception reception(options_for(folder));
        Bytes damaged = line;
        damaged[i] = ~damaged[i];
        reception.feed(damaged);
        const ExitStatus status = reception.finish();
        const Bytes written = read_bytes(folder / "out.kcdata");
        if (status == exit_complete ? written != capture : !written.empty())
            FAIL("byte " << i << " of the line, status " << status);
    }
}

TEST_CASE("a capture whose first frame is missing leaves nothing") {
    const TemporaryFolder folder;
    const Bytes line = tools_test::line_with(tools_test::small_capture());
    Reception reception(options_for(folder));
    reception.feed(std::span(line).subspan(60));
    CHECK(reception.finish() == exit_failure);
    CHECK(folder.file_count() == 0);
}

TEST_CASE("a complete capture beside a damaged one is kept, and the status says damaged") {
    const TemporaryFolder folder;
    Bytes line = tools_test::line_with(tools_test::small_capture());
    line[line.size() / 2] ^= std::byte{1};
    Reception reception(options_for(folder, 0));
    reception.feed(joined(line, tools_test::line_with(other_capture())));
    CHECK(reception.finish() == exit_damaged);
    CHECK(read_bytes(folder / "out.kcdata") == other_capture());
}

TEST_CASE("a frame that is sent again fills the gap") {
    const TemporaryFolder folder;
    const Bytes line = tools_test::line_with(tools_test::small_capture());
    Bytes damaged = line;
    damaged[damaged.size() / 2] ^= std::byte{1};
    Reception reception(options_for(folder));
    reception.feed(joined(damaged, line));
    CHECK(reception.finish() == exit_complete);
    CHECK(read_bytes(folder / "out.kcdata") == tools_test::small_capture());
}

TEST_CASE("a line without a capture is a failure") {
    const TemporaryFolder folder;
    Reception reception(options_for(folder, 0));
    const std::string_view text = "console text only\n";
    reception.feed(std::as_bytes(std::span(text)));
    CHECK(reception.finish() == exit_failure);
    CHECK(folder.file_count() == 0);
}

TEST_CASE("a capture that cannot be written is a failure, and ends the wait") {
    const TemporaryFolder folder;
    Reception reception({.output = folder / "no/such/folder", .hide_console = true});
    reception.feed(tools_test::line_with(tools_test::small_capture()));
    CHECK(reception.done());
    CHECK(reception.finish() == exit_failure);
}
