#include "kcdata/serial/line.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <vector>

#include "test/unit/kcdata/serial_line.hpp"

using namespace kcdata;
using namespace kcdata::serial;

namespace {

/// What a Line tells, text joined up, as one string.
class Transcript final : public LineHandler {
  public:
    void text(std::span<const std::byte> bytes) override {
        ++text_calls_;
        for (std::byte byte : bytes)
            words_.push_back(static_cast<char>(byte));
    }
    void frame(const Frame& frame) override {
        words_ +=
            "<" + std::to_string(frame.number) + ":" + std::to_string(frame.payload.size()) + ">";
    }
    void damaged(std::uint64_t position, std::size_t size) override {
        words_ += "<damage at " + std::to_string(position) + " of " + std::to_string(size) + ">";
    }

    std::string words_;
    std::size_t text_calls_ = 0;
};

std::string read(const std::vector<std::byte>& bytes, std::size_t chunk = SIZE_MAX) {
    Transcript transcript;
    Line line(transcript);
    std::span<const std::byte> rest(bytes);
    while (!rest.empty()) {
        const std::size_t size = std::min(chunk, rest.size());
        line.feed(rest.first(size));
        rest = rest.subspan(size);
    }
    line.finish();
    return transcript.words_;
}

std::vector<std::vector<std::byte>> three_frames() {
    std::mt19937 random(1);
    return frames_of(sparse_bytes(random, 50), 25);
}

}  // namespace

TEST_CASE("console text and frames come out in the order of the line") {
    const auto frames = three_frames();
    Wire wire;
    wire.text("boot\n")
        .raw(frames[0])
        .text("between\n")
        .raw(frames[1])
        .raw(frames[2])
        .text("after");
    CHECK(read(wire.bytes_) == "boot\n<0:25>between\n<1:25><2:0>after");
}

TEST_CASE("any cutting of the input gives the same result") {
    std::mt19937 random(2);
    const auto frames = frames_of(random_bytes(random, 700), 300);
    Wire wire;
    wire.text("noise\x01\x02").raw(frames[0]).text("text\n");
    std::vector<std::byte> bad = frames[1];
    bad[100] ^= std::byte{0x10};
    wire.raw(bad).raw(frames[1]).raw({std::byte{0}, std::byte{1}, std::byte{7}});
    wire.raw(frames[2]).raw(frames[3]).text("end").raw({std::byte{0}, std::byte{1}});
    const std::string whole = read(wire.bytes_);
    CHECK(whole.find("<damage") != std::string::npos);
    for (std::size_t chunk = 1; chunk < 40; ++chunk)
        REQUIRE(read(wire.bytes_, chunk) == whole);
    for (std::size_t cut = 0; cut <= wire.bytes_.size(); ++cut) {
        Transcript transcript;
        Line line(transcript);
        line.feed(std::span(wire.bytes_).first(cut));
        line.feed(std::span(wire.bytes_).subspan(cut));
        line.finish();
        REQUIRE(transcript.words_ == whole);
    }
}

TEST_CASE("text is passed on at once, however long its line is") {
    Transcript transcript;
    Line line(transcript);
    const std::vector<std::byte> text(1 << 20, std::byte{'x'});
    line.feed(text);
    CHECK(transcript.words_.size() == text.size());
    CHECK(transcript.text_calls_ == 1);
    line.feed(std::span(text).first(1));
    CHECK(transcript.words_.size() == text.size() + 1);
}

TEST_CASE("a frame is taken although the zero behind it was lost") {
    const auto frames = three_frames();
    std::vector<std::byte> open = frames[0];
    open.pop_back();
    Wire wire;
    wire.raw(open).text("text").raw(open).raw(frames[1]);
    CHECK(read(wire.bytes_) == "<0:25>text<0:25><1:25>");
}

TEST_CASE("after a damaged frame the next one is taken") {
    const auto frames = three_frames();
    for (std::size_t at = 0; at < frames[0].size(); ++at) {
        for (int bit = 0; bit < 8; ++bit) {
            std::vector<std::byte> damaged = frames[0];
            damaged[at] ^= static_cast<std::byte>(1u << bit);
            Wire wire;
            wire.raw(damaged).raw(frames[1]);
            const std::string words = read(wire.bytes_);
            INFO("byte " << at << " bit " << bit);
            REQUIRE(words.ends_with("<1:25>"));
            // Only a change of the zero behind it leaves the frame itself whole.
            REQUIRE(words.starts_with("<0:25>") == (at == frames[0].size() - 1));
        }
    }
}

TEST_CASE("what is left of a damaged frame is told with its place") {
    const auto frames = three_frames();
    Wire wire;
    wire.text("text").raw({frames[0].begin(), frames[0].begin() + 20}).raw(frames[1]);
    CHECK(read(wire.bytes_) == "text<damage at 5 of 19><1:25>");
    CHECK(read({frames[0].begin(), frames[0].begin() + 20}) == "<damage at 1 of 19>");
}

TEST_CASE("a frame that lost its end swallows no more text than a frame is long") {
    const auto frames = three_frames();
    std::vector<std::byte> damaged = frames[0];
    damaged[2] = std::byte{0xff};
    damaged.pop_back();
    Wire wire;
    wire.raw(damaged).text(std::string(10000, 'x'));
    const std::string words = read(wire.bytes_);
    CHECK(words.starts_with("<damage at 1 of "));
    CHECK(std::count(words.begin(), words.end(), 'x') > 10000 - 2200);
}

TEST_CASE("a frame of any length leaves no byte behind it as text") {
    std::size_t ending_in_full_run = 0;
    for (std::size_t size = 1; size <= 1100; ++size) {
        const std::vector<std::byte> capture(size, std::byte{0x5a});
        const auto frames = frames_of(capture, max_frame_payload);
        Wire wire;
        wire.raw(frames[0]).raw(frames[1]);
        REQUIRE(read(wire.bytes_) == "<0:" + std::to_string(size) + "><1:0>");
        // A last run of 254 bytes is its own end: no code follows it.
        if (frames[0].size() > 256 && frames[0][frames[0].size() - 256] == std::byte{0xff})
            ++ending_in_full_run;
    }
    CHECK(ending_in_full_run > 0);
}

TEST_CASE("a length no frame has is not believed") {
    Wire wire;
    wire.raw({std::byte{0}, std::byte{1}, std::byte{0xff}}).text(std::string(10000, 'A'));
    // The longest frame has 2072 bytes, which COBS makes 2081; the rest is text again.
    CHECK(read(wire.bytes_) == "<damage at 1 of 2081>" + std::string(10003 - 1 - 2081, 'A'));
}
