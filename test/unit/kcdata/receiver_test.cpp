#include "kcdata/serial/receiver.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kcdata/serial/crc32c.hpp"
#include "test/unit/kcdata/serial_line.hpp"

using namespace kcdata;
using namespace kcdata::serial;

namespace {

std::vector<std::byte> capture_of(std::uint32_t seed, std::size_t size) {
    std::mt19937 random(seed);
    return sparse_bytes(random, size);
}

std::string as_string(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The bytes of one data frame cut freely out of a capture.
std::vector<std::byte> cut(const std::vector<std::byte>& capture, std::size_t offset,
                           std::size_t size) {
    Wire wire;
    REQUIRE(write_data_frame(wire, Encoding::binary,
                             {.kind = FrameKind::data,
                              .object = crc32c(capture),
                              .offset = static_cast<std::uint32_t>(offset),
                              .total = static_cast<std::uint32_t>(capture.size()),
                              .payload = std::span(capture).subspan(offset, size)}) ==
            KERN_SUCCESS);
    return wire.bytes_;
}

}  // namespace

TEST_CASE("captures come out of a log that also holds console text") {
    const auto first = capture_of(1, 10000);
    const auto second = capture_of(2, 3);
    Wire wire;
    wire.text("boot\r\n");
    Sender one(first, wire);
    while (!one.done()) {
        REQUIRE(one.send_next() == KERN_SUCCESS);
        wire.text("tick\r\n");
    }
    Sender two(second, wire);
    REQUIRE(two.send_all() == KERN_SUCCESS);
    wire.text("bye\r\n");

    Recorder recorder;
    Receiver receiver(recorder);
    receiver.feed(wire.bytes_);
    receiver.finish();
    REQUIRE(recorder.complete_.size() == 2);
    CHECK(recorder.complete_[0] == Recorder::Complete{crc32c(first), first});
    CHECK(recorder.complete_[1] == Recorder::Complete{crc32c(second), second});
    CHECK(recorder.text_ == "boot\r\ntick\r\ntick\r\ntick\r\ntick\r\nbye\r\n");
    CHECK(recorder.damaged_.empty());
    CHECK(receiver.incomplete().empty());
}

TEST_CASE("every way to cut a log in two gives the same result") {
    const auto capture = capture_of(3, 900);
    Wire wire;
    wire.text("a");
    for (const auto& frame : frames_of(capture, 200))
        wire.raw(frame).text("line\n");
    Recorder whole;
    Receiver one(whole);
    one.feed(wire.bytes_);
    for (std::size_t at = 0; at <= wire.bytes_.size(); ++at) {
        Recorder parts;
        Receiver receiver(parts);
        receiver.feed(std::span(wire.bytes_).first(at));
        receiver.feed(std::span(wire.bytes_).subspan(at));
        REQUIRE(parts.events_ == whole.events_);
        REQUIRE(parts.text_ == whole.text_);
        REQUIRE(parts.complete_ == whole.complete_);
    }
}

TEST_CASE("frames may come in any order, and more than once") {
    const auto capture = capture_of(4, 2000);
    auto frames = frames_of(capture, 100);
    std::mt19937 random(4);
    for (int round = 0; round < 50; ++round) {
        std::shuffle(frames.begin(), frames.end(), random);
        Recorder recorder;
        Receiver receiver(recorder);
        for (const auto& frame : frames)
            for (std::uint32_t copies = 0; copies <= random() % 3; ++copies)
                receiver.feed(frame);
        REQUIRE(recorder.complete_.size() == 1);
        REQUIRE(recorder.complete_[0].bytes == capture);
        REQUIRE(receiver.incomplete().empty());
    }
}

TEST_CASE("a capture is complete without its end frame, since its name verifies it") {
    const auto capture = capture_of(5, 500);
    auto frames = frames_of(capture, 100);
    frames.pop_back();
    Recorder recorder;
    Receiver receiver(recorder);
    for (const auto& frame : frames)
        receiver.feed(frame);
    REQUIRE(recorder.complete_.size() == 1);
    CHECK(recorder.complete_[0].bytes == capture);
}

TEST_CASE("frames that come late, after their capture is complete, are ignored") {
    const auto capture = capture_of(6, 500);
    const auto frames = frames_of(capture, 100);
    Recorder recorder;
    Receiver receiver(recorder);
    for (int twice = 0; twice < 2; ++twice)
        for (const auto& frame : frames)
            receiver.feed(frame);
    CHECK(recorder.complete_.size() == 1);
    CHECK_FALSE(receiver.receiving());
}

TEST_CASE("what is missing is named by its bytes") {
    const auto capture = capture_of(7, 1050);
    const auto frames = frames_of(capture, 100);
    REQUIRE(frames.size() == 12);
    Recorder recorder;
    Receiver receiver(recorder);
    for (std::size_t index : {1u, 2u, 5u, 9u})
        receiver.feed(frames[index]);

    auto open = receiver.incomplete();
    REQUIRE(open.size() == 1);
    CHECK(open[0].progress.object == crc32c(capture));
    CHECK(open[0].progress.total == 1050);
    CHECK(open[0].progress.received == 400);
    CHECK_FALSE(open[0].progress.end_seen);
    CHECK(open[0].missing == std::vector<Range>{{0, 100}, {300, 200}, {600, 300}, {1000, 50}});
    CHECK(open[0].bytes.empty());

    receiver.feed(frames[11]);
    open = receiver.incomplete();
    CHECK(open[0].progress.end_seen);

    receiver.feed(frames[0]);
    open = receiver.incomplete();
    REQUIRE(open[0].missing.size() == 3);
    CHECK(open[0].bytes == std::vector(capture.begin(), capture.begin() + 300));

    for (std::size_t index : {3u, 4u, 6u, 7u, 8u, 10u})
        receiver.feed(frames[index]);
    REQUIRE(recorder.complete_.size() == 1);
    CHECK(recorder.complete_[0].bytes == capture);
}

TEST_CASE("frames of different sizes fill each other's gaps") {
    const auto capture = capture_of(8, 2000);
    std::mt19937 random(8);
    for (int round = 0; round < 40; ++round) {
        Recorder recorder;
        Receiver receiver(recorder);
        std::vector<bool> have(capture.size());
        while (recorder.complete_.empty()) {
            const std::size_t start = random() % (capture.size() + 300);
            const std::size_t offset = start < 300 ? 0 : start - 300;
            const std::size_t size =
                1 + random() % std::min(capture.size() - offset, std::size_t{700});
            receiver.feed(cut(capture, offset, size));
            std::fill_n(have.begin() + static_cast<std::ptrdiff_t>(offset), size, true);
            const auto open = receiver.incomplete();
            const auto count = std::count(have.begin(), have.end(), true);
            if (open.empty()) {
                REQUIRE(count == static_cast<std::ptrdiff_t>(capture.size()));
                break;
            }
            REQUIRE(open[0].progress.received == count);
            std::vector<bool> named(capture.size(), true);
            for (const Range& range : open[0].missing)
                std::fill_n(named.begin() + range.offset, range.length, false);
            REQUIRE(named == have);
        }
        REQUIRE(recorder.complete_[0].bytes == capture);
    }
}

TEST_CASE("two captures at once do not mix, even with the same length") {
    const auto first = capture_of(9, 1000);
    const auto second = capture_of(10, 1000);
    const auto a = frames_of(first, 100);
    const auto b = frames_of(second, 100);
    Recorder recorder;
    Receiver receiver(recorder);
    for (std::size_t index = 0; index < a.size(); ++index) {
        receiver.feed(a[index]);
        receiver.feed(b[b.size() - 1 - index]);
    }
    REQUIRE(recorder.complete_.size() == 2);
    CHECK(recorder.complete_[0].bytes == first);
    CHECK(recorder.complete_[1].bytes == second);
}

TEST_CASE("a whole that is not what its name says is given up and never delivered") {
    const auto capture = capture_of(11, 200);
    auto other = capture;
    other[150] ^= std::byte{1};
    Wire wire;
    for (std::uint32_t half : {0u, 1u})
        REQUIRE(write_data_frame(wire, Encoding::binary,
                                 {.kind = FrameKind::data,
                                  .object = crc32c(capture),
                                  .offset = half * 100,
                                  .total = 200,
                                  .payload = std::span(other).subspan(half * 100, 100)}) ==
                KERN_SUCCESS);
    Recorder recorder;
    Receiver receiver(recorder);
    receiver.feed(wire.bytes_);
    CHECK(recorder.complete_.empty());
    REQUIRE(recorder.abandoned_.size() == 1);
    CHECK(recorder.abandoned_[0].reason == AbandonReason::wrong_crc);

    for (const auto& frame : frames_of(capture, 100))
        receiver.feed(frame);
    REQUIRE(recorder.complete_.size() == 1);
    CHECK(recorder.complete_[0].bytes == capture);
}

TEST_CASE("a capture longer than the limit is refused once, without room being made for it") {
    const auto capture = capture_of(12, 2000);
    Recorder recorder;
    Receiver receiver(recorder, {.max_total = 1999, .max_open = 4});
    for (const auto& frame : frames_of(capture, 100))
        receiver.feed(frame);
    REQUIRE(recorder.abandoned_.size() == 1);
    CHECK(recorder.abandoned_[0].reason == AbandonReason::too_long);
    CHECK(recorder.abandoned_[0].capture.progress.total == 2000);
    CHECK(recorder.abandoned_[0].capture.bytes.empty());
    CHECK_FALSE(receiver.receiving());
}

TEST_CASE("a capture that has hardly begun takes no room for what it says is to come") {
    Wire wire;
    const auto payload = capture_of(13, 100);
    constexpr std::uint32_t total = 256u << 20;
    REQUIRE(write_data_frame(wire, Encoding::binary,
                             {.kind = FrameKind::data,
                              .object = 1,
                              .offset = total - 100,
                              .total = total,
                              .payload = payload}) == KERN_SUCCESS);
    Recorder recorder;
    Receiver receiver(recorder);
    receiver.feed(wire.bytes_);
    const auto open = receiver.incomplete();
    REQUIRE(open.size() == 1);
    CHECK(open[0].progress.received == 100);
    CHECK(open[0].bytes.capacity() == 0);
    REQUIRE(open[0].missing.size() == 1);
    CHECK(open[0].missing[0].length == total - 100);
}

TEST_CASE("a capture is told again only after as many others as are remembered") {
    Recorder recorder;
    Receiver receiver(recorder);
    const auto send = [&](std::uint32_t seed) {
        for (const auto& frame : frames_of(capture_of(seed, 50), 100))
            receiver.feed(frame);
    };
    send(100);
    for (std::uint32_t other = 1; other < Receiver::remembered; ++other)
        send(100 + other);
    send(100);
    CHECK(recorder.complete_.size() == Receiver::remembered);
    send(99);
    send(100);
    CHECK(recorder.complete_.size() == Receiver::remembered + 2);
}

TEST_CASE("the oldest of too many captures is given up, with what it lacks") {
    Recorder recorder;
    Receiver receiver(recorder, {.max_total = 1u << 20, .max_open = 2});
    std::vector<std::vector<std::byte>> captures;
    for (std::uint32_t seed = 20; seed < 23; ++seed) {
        captures.push_back(capture_of(seed, 500));
        receiver.feed(frames_of(captures.back(), 100)[1]);
    }
    REQUIRE(recorder.abandoned_.size() == 1);
    CHECK(recorder.abandoned_[0].reason == AbandonReason::too_many);
    CHECK(recorder.abandoned_[0].capture.progress.object == crc32c(captures[0]));
    CHECK(recorder.abandoned_[0].capture.missing.size() == 2);
    CHECK(receiver.incomplete().size() == 2);
}

TEST_CASE("noise before the first frame costs nothing") {
    const auto capture = capture_of(13, 700);
    std::mt19937 random(13);
    for (int round = 0; round < 500; ++round) {
        Wire wire;
        wire.raw(random_bytes(random, random() % 400));
        for (const auto& frame : frames_of(capture, 256))
            wire.raw(frame);
        Recorder recorder;
        Receiver receiver(recorder);
        receiver.feed(wire.bytes_);
        REQUIRE(recorder.complete_.size() == 1);
        REQUIRE(recorder.complete_[0].bytes == capture);
    }
}

TEST_CASE(
    "a damaged log gives whole captures and exact lists of what is missing, never a wrong one") {
    std::size_t complete = 0;
    std::size_t incomplete = 0;
    for (std::uint32_t seed = 0; seed < 4000; ++seed) {
        std::mt19937 random(seed);
        struct Sent {
            std::vector<std::byte> bytes;
            std::size_t payload;
            std::vector<std::vector<std::byte>> frames;
        };
        std::vector<Sent> sent;
        std::vector<std::vector<std::byte>> log;
        const auto add_text = [&] {
            Wire text;
            for (auto lines = random() % 3; lines > 0; --lines)
                text.text("[   1.234567] console line " + std::to_string(random()) + "\r\n");
            log.push_back(text.bytes_);
        };
        for (auto count = 1 + random() % 3; count > 0; --count) {
            const std::size_t size = 1 + random() % 6000;
            const std::size_t payload = 64 + random() % (max_frame_payload - 63);
            auto bytes =
                random() % 2 == 0 ? sparse_bytes(random, size) : random_bytes(random, size);
            auto frames = frames_of(bytes, payload);
            for (const auto& frame : frames) {
                add_text();
                log.push_back(frame);
            }
            sent.push_back({std::move(bytes), payload, std::move(frames)});
        }
        add_text();

        // Damage: whole pieces reordered, dropped and sent twice, then bits and bytes.
        for (auto moves = random() % 3; moves > 0; --moves)
            std::swap(log[random() % log.size()], log[random() % log.size()]);
        if (random() % 4 == 0)
            log.erase(log.begin() + static_cast<std::ptrdiff_t>(random() % log.size()));
        if (random() % 4 == 0)
            log.insert(log.begin() + static_cast<std::ptrdiff_t>(random() % log.size()),
                       std::vector(log[random() % log.size()]));
        std::vector<std::byte> line;
        for (const auto& piece : log)
            line.insert(line.end(), piece.begin(), piece.end());
        for (auto hits = random() % 6; hits > 0 && !line.empty(); --hits) {
            const std::size_t at = random() % line.size();
            const std::size_t size = std::min<std::size_t>(1 + random() % 40, line.size() - at);
            const auto here = line.begin() + static_cast<std::ptrdiff_t>(at);
            const auto there = here + static_cast<std::ptrdiff_t>(size);
            switch (random() % 6) {
                case 0:
                    *here ^= static_cast<std::byte>(1u << (random() % 8));
                    break;
                case 1:
                    line.erase(here, there);
                    break;
                case 2: {
                    const std::vector<std::byte> copy(here, there);
                    line.insert(here, copy.begin(), copy.end());
                    break;
                }
                case 3: {
                    const auto noise = random_bytes(random, size);
                    line.insert(here, noise.begin(), noise.end());
                    break;
                }
                case 4:
                    std::rotate(here, here + static_cast<std::ptrdiff_t>(size / 2), there);
                    break;
                case 5:
                    *here = std::byte{0};
                    break;
            }
        }

        Recorder recorder;
        Receiver receiver(recorder);
        for (std::span<const std::byte> rest(line); !rest.empty();) {
            const std::size_t size = std::min<std::size_t>(1 + random() % 5000, rest.size());
            receiver.feed(rest.first(size));
            rest = rest.subspan(size);
        }
        receiver.finish();
        const auto open = receiver.incomplete();
        const std::string text = as_string(line);

        INFO("seed " << seed);
        REQUIRE(recorder.abandoned_.empty());
        std::size_t accounted = 0;
        for (const Sent& one : sent) {
            // The oracle: a frame arrives if its bytes stand undamaged in the log behind a zero.
            std::vector<bool> intact(one.bytes.size());
            bool any = false;
            for (std::size_t index = 0; index < one.frames.size(); ++index) {
                const auto& frame = one.frames[index];
                if (text.find(as_string(std::span(frame).first(frame.size() - 1))) ==
                    std::string::npos)
                    continue;
                any = true;
                for (std::size_t at = index * one.payload;
                     at < std::min((index + 1) * one.payload, one.bytes.size()); ++at)
                    intact[at] = true;
            }
            const std::uint32_t name = crc32c(one.bytes);
            const bool whole = std::find(intact.begin(), intact.end(), false) == intact.end();
            const auto delivered = std::find(recorder.complete_.begin(), recorder.complete_.end(),
                                             Recorder::Complete{name, one.bytes});
            REQUIRE((delivered != recorder.complete_.end()) == whole);
            const auto partial = std::find_if(open.begin(), open.end(), [&](const auto& capture) {
                return capture.progress.object == name;
            });
            REQUIRE((partial != open.end()) == (any && !whole));
            accounted += any ? 1 : 0;
            complete += whole ? 1 : 0;
            if (partial == open.end())
                continue;
            ++incomplete;
            std::vector<bool> named(one.bytes.size(), true);
            for (const Range& range : partial->missing)
                std::fill_n(named.begin() + range.offset, range.length, false);
            REQUIRE(named == intact);
        }
        REQUIRE(recorder.complete_.size() + open.size() == accounted);
    }
    // Both outcomes were tried in earnest.
    CHECK(complete > 1000);
    CHECK(incomplete > 1000);
}
