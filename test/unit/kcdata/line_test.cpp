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
        DataFrame data;
        REQUIRE(parse_data_frame(frame, data));
        words_ +=
            "<" + std::to_string(data.offset) + ":" + std::to_string(data.payload.size()) + ">";
    }
    void damaged(std::uint64_t position, std::size_t size) override {
        words_ += "<damage at " + std::to_string(position) + " of " + std::to_string(size) + ">";
    }

    std::string words_;
    std::size_t text_calls_ = 0;
};

std::string read(const std::vector<std::byte>& bytes, std::size_t chunk = SIZE_MAX) {
    Transcript transcript;
    Line::Room<max_frame_body> room;
    Line line(transcript, room);
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
    CHECK(read(wire.bytes_) == "boot\n<0:25>between\n<25:25><50:0>after");
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
        Line::Room<max_frame_body> room;
        Line line(transcript, room);
        line.feed(std::span(wire.bytes_).first(cut));
        line.feed(std::span(wire.bytes_).subspan(cut));
        line.finish();
        REQUIRE(transcript.words_ == whole);
    }
}

TEST_CASE("text is passed on at once, however long its line is") {
    Transcript transcript;
    Line::Room<max_frame_body> room;
    Line line(transcript, room);
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
    CHECK(read(wire.bytes_) == "<0:25>text<0:25><25:25>");
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
            REQUIRE(words.ends_with("<25:25>"));
            // Only a change of the zero behind it leaves the frame itself whole.
            REQUIRE(words.starts_with("<0:25>") == (at == frames[0].size() - 1));
        }
    }
}

TEST_CASE("what is left of a damaged frame is told with its place") {
    const auto frames = three_frames();
    Wire wire;
    wire.text("text").raw({frames[0].begin(), frames[0].begin() + 20}).raw(frames[1]);
    CHECK(read(wire.bytes_) == "text<damage at 5 of 19><25:25>");
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
    CHECK(std::count(words.begin(), words.end(), 'x') > 10000 - 4200);
}

TEST_CASE("a frame of any length leaves no byte behind it as text") {
    std::size_t ending_in_full_run = 0;
    for (std::size_t size = 1; size <= 1100; ++size) {
        const std::vector<std::byte> capture(size, std::byte{0x5a});
        const auto frames = frames_of(capture, max_frame_payload);
        Wire wire;
        wire.raw(frames[0]).raw(frames[1]);
        REQUIRE(read(wire.bytes_) ==
                "<0:" + std::to_string(size) + "><" + std::to_string(size) + ":0>");
        // A last run of 254 bytes is its own end: no code follows it.
        if (frames[0].size() > 256 && frames[0][frames[0].size() - 256] == std::byte{0xff})
            ++ending_in_full_run;
    }
    CHECK(ending_in_full_run > 0);
}

TEST_CASE("a length no frame has is not believed") {
    Wire wire;
    wire.raw({std::byte{0}, std::byte{1}, std::byte{0xff}}).text(std::string(10000, 'A'));
    // The longest frame has 3864 bytes, which COBS makes 3880; the rest is text again.
    CHECK(read(wire.bytes_) == "<damage at 1 of 3880>" + std::string(10003 - 1 - 3880, 'A'));
}

TEST_CASE("text frames and binary ones stand on the same line") {
    const auto frames = three_frames();
    const auto text = text_frames_of(std::vector<std::byte>(50, std::byte{7}), 25);
    Wire wire;
    wire.text("a\n").raw(text[0]).raw(frames[1]).text("b~k~kc~").raw(text[1]).text("\r\n");
    CHECK(read(wire.bytes_) == "a\n<0:25><25:25>b~k~kc~<25:25>\r\n");
}

TEST_CASE("any cutting of a line with text frames gives the same result") {
    std::mt19937 random(3);
    const auto frames = text_frames_of(random_bytes(random, 300), 100);
    Wire wire;
    wire.text("~~kc~k").raw(frames[0]).text("~kc:no frame\n");
    std::vector<std::byte> bad = frames[1];
    bad[20] ^= std::byte{2};
    wire.raw(bad).raw(frames[1]).raw({frames[2].begin(), frames[2].begin() + 30}).raw(frames[2]);
    wire.text("~kc");
    const std::string whole = read(wire.bytes_);
    CHECK(whole.starts_with("~~kc~k<0:100><damage at "));
    CHECK(whole.ends_with("<200:100>~kc"));
    CHECK(whole.find("<100:100>") != std::string::npos);
    for (std::size_t chunk = 1; chunk < 40; ++chunk)
        REQUIRE(read(wire.bytes_, chunk) == whole);
}

TEST_CASE("after a damaged text frame the next one is taken, and no text is lost") {
    const auto frames = text_frames_of(std::vector<std::byte>(50, std::byte{7}), 25);
    // Behind the last character CR LF may be damaged: that is text then.
    for (std::size_t at = 0; at + 2 < frames[0].size(); ++at) {
        for (int bit = 0; bit < 8; ++bit) {
            std::vector<std::byte> damaged = frames[0];
            damaged[at] ^= static_cast<std::byte>(1u << bit);
            Wire wire;
            wire.text("x\n").raw(damaged).raw(frames[1]).text("y\n");
            const std::string words = read(wire.bytes_);
            INFO("character " << at << " bit " << bit);
            REQUIRE(words.starts_with("x\n"));
            REQUIRE(words.ends_with("<25:25>y\n"));
            // Two bits of the last character stand for nothing.
            if (at + 3 != frames[0].size())
                REQUIRE(words.find("<0:25>") == std::string::npos);
        }
    }
}

TEST_CASE("a text frame costs the text behind it nothing, however it ends") {
    const auto frames = text_frames_of(std::vector<std::byte>(25, std::byte{7}), 25);
    const std::vector<std::byte> bare(frames[0].begin(), frames[0].end() - 2);
    for (const char* ending : {"\n", "\r\n", "\r\r\n", ""}) {
        Wire wire;
        wire.raw(bare).text(std::string(ending) + "[text]\n");
        CHECK(read(wire.bytes_) == "<0:25>[text]\n");
    }
}

TEST_CASE("a frame with a longer body than there is room for is damage") {
    Wire wire;
    const std::vector<std::byte> body(101, std::byte{'b'});
    const auto told = [&](std::span<const std::byte> bytes, Encoding encoding) {
        Wire line_bytes;
        REQUIRE(write_frame(line_bytes, encoding, FrameKind::request, bytes) == KERN_SUCCESS);
        class Handler final : public LineHandler {
          public:
            void text(std::span<const std::byte>) override {}
            void frame(const Frame& frame) override { body_ = frame.body.size(); }
            void damaged(std::uint64_t, std::size_t) override { damaged_ = true; }
            std::size_t body_ = 0;
            bool damaged_ = false;
        } handler;
        Line::Room<100> room;
        Line line(handler, room);
        line.feed(line_bytes.bytes_);
        line.finish();
        return std::pair{handler.body_, handler.damaged_};
    };
    for (Encoding encoding : {Encoding::binary, Encoding::text}) {
        CHECK(told(std::span(body).first(100), encoding) == std::pair{std::size_t{100}, false});
        CHECK(told(body, encoding) == std::pair{std::size_t{0}, true});
    }
}
