#include "kcdata/serial/parity.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "kcdata/serial/receiver.hpp"
#include "kcdata/serial/repair.hpp"
#include "kcdata/serial/sender.hpp"
#include "test/unit/kcdata/serial_line.hpp"

using namespace kcdata;
using namespace kcdata::serial;

namespace {

/// The product in GF(256) as polynomials modulo x^8 + x^4 + x^3 + x^2 + 1, bit by bit.
std::uint8_t plain_product(unsigned one, unsigned other) {
    unsigned product = 0;
    for (int bit = 0; bit < 8; ++bit)
        if ((other >> bit & 1) != 0)
            product ^= one << bit;
    for (int bit = 15; bit >= 8; --bit)
        if ((product >> bit & 1) != 0)
            product ^= 0x11du << (bit - 8);
    return static_cast<std::uint8_t>(product);
}

std::vector<std::vector<std::byte>> all_frames(std::span<const std::byte> capture,
                                               const SenderOptions& options) {
    std::vector<std::vector<std::byte>> frames;
    Wire wire;
    Sender sender(capture, wire, options);
    while (!sender.done()) {
        wire.bytes_.clear();
        REQUIRE(sender.send_next() == KERN_SUCCESS);
        frames.push_back(wire.bytes_);
    }
    return frames;
}

/// Each byte of `line` may have a bit flipped, be dropped, or come twice.
std::vector<std::byte> damaged(std::mt19937_64& random, const std::vector<std::byte>& line,
                               double probability) {
    std::vector<std::byte> result;
    std::geometric_distribution<std::size_t> distance(probability);
    std::size_t left = distance(random);
    for (const std::byte byte : line) {
        if (left-- != 0) {
            result.push_back(byte);
            continue;
        }
        left = distance(random);
        switch (random() % 3) {
            case 0:
                result.push_back(byte ^ static_cast<std::byte>(1u << random() % 8));
                break;
            case 1:
                break;
            default:
                result.insert(result.end(), 2, byte);
        }
    }
    return result;
}

}  // namespace

TEST_CASE("GF(256) multiplies polynomials modulo 0x11d, and every number but 0 has an inverse") {
    for (unsigned one = 0; one < 256; ++one)
        for (unsigned other = 0; other < 256; ++other)
            REQUIRE(Gf256::multiply(static_cast<std::uint8_t>(one),
                                    static_cast<std::uint8_t>(other)) == plain_product(one, other));
    for (unsigned value = 1; value < 256; ++value)
        REQUIRE(plain_product(value, Gf256::inverse(static_cast<std::uint8_t>(value))) == 1);
}

TEST_CASE("a parity frame is the sum of its group's frames, each over x + y") {
    std::mt19937 random(1);
    const auto capture = random_bytes(random, 100);
    const ParityLayout layout{.total = 100, .payload = 8, .groups = 3};
    REQUIRE(layout.frames() == 13);
    CHECK(layout.frames_of(0) == 5);
    CHECK(layout.frames_of(1) == 4);
    CHECK(layout.frames_of(2) == 4);
    for (std::uint32_t group = 0; group < 3; ++group) {
        for (std::uint32_t parity = 0; parity < 4; ++parity) {
            std::array<std::byte, 8> sum;
            make_parity(capture, layout, group, parity, sum);
            for (std::size_t at = 0; at < sum.size(); ++at) {
                unsigned expected = 0;
                for (std::size_t index = 0; group + 3 * index < 13; ++index) {
                    const std::size_t place = 8 * (group + 3 * index) + at;
                    const unsigned byte =
                        place < 100 ? std::to_integer<unsigned>(capture[place]) : 0;
                    // The factor times (x + y) is the byte.
                    unsigned factor = 0;
                    while (plain_product(factor, static_cast<unsigned>((255 - parity) ^ index)) !=
                           1)
                        ++factor;
                    expected ^= plain_product(factor, byte);
                }
                REQUIRE(std::to_integer<unsigned>(sum[at]) == expected);
            }
        }
    }
}

TEST_CASE("any lost frames of a group are restored from as many parity frames") {
    std::mt19937 random(2);
    for (int round = 0; round < 300; ++round) {
        const auto capture = random_bytes(random, 1 + random() % 3000);
        const SenderOptions options{
            .payload = 1 + random() % 60,
            .parity_percent = static_cast<std::uint32_t>(1 + random() % 100)};
        auto frames = all_frames(capture, options);
        Wire wire;
        const Sender sender(capture, wire, options);
        const std::size_t data = sender.frame_count();
        const std::size_t groups = (data - 1) / 128 + 1;
        const std::size_t parities = sender.parity_count() / groups;
        REQUIRE(frames.size() == data + sender.parity_count() + 1);
        // Of each group of both kinds of frames: as many as there are parity frames, at random.
        std::vector<bool> lost(frames.size());
        for (std::size_t group = 0; group < groups; ++group) {
            std::vector<std::size_t> mine;
            for (std::size_t frame = group; frame < data; frame += groups)
                mine.push_back(frame);
            for (std::size_t parity = 0; parity < parities; ++parity)
                mine.push_back(data + parity * groups + group);
            std::shuffle(mine.begin(), mine.end(), random);
            for (std::size_t index = 0; index < parities; ++index)
                lost[mine[index]] = true;
        }
        std::vector<std::size_t> order;
        for (std::size_t frame = 0; frame + 1 < frames.size(); ++frame)
            if (!lost[frame])
                order.push_back(frame);
        // In any order.
        if (round % 2 == 0)
            std::shuffle(order.begin(), order.end(), random);
        Recorder recorder;
        Receiver receiver(recorder);
        for (std::size_t index = 0; index + 1 < order.size(); ++index) {
            receiver.feed(frames[order[index]]);
        }
        receiver.feed(frames[order.back()]);
        INFO("round " << round);
        REQUIRE(recorder.complete_.size() == 1);
        REQUIRE(recorder.complete_[0].bytes == capture);
    }
}

TEST_CASE("with one parity frame too few a capture is incomplete, and not wrong") {
    std::mt19937 random(3);
    const auto capture = random_bytes(random, 1000);
    const SenderOptions options{.payload = 50, .parity_percent = 10};
    const auto frames = all_frames(capture, options);
    // 20 data frames, 6 parity frames, the end.
    REQUIRE(frames.size() == 27);
    Recorder recorder;
    Receiver receiver(recorder);
    for (std::size_t frame = 7; frame < frames.size(); ++frame)
        receiver.feed(frames[frame]);
    CHECK(recorder.complete_.empty());
    REQUIRE(receiver.incomplete().size() == 1);
    CHECK(receiver.incomplete()[0].missing == std::vector<Range>{{0, 350}});
    receiver.feed(frames[3]);
    REQUIRE(recorder.complete_.size() == 1);
    CHECK(recorder.complete_[0].bytes == capture);
}

TEST_CASE("a parity frame whose numbers contradict each other is neither written nor taken") {
    const std::vector<std::byte> sum(8);
    const ParityFrame good{.object = 1,
                           .layout = {.total = 100, .payload = 8, .groups = 3},
                           .group = 2,
                           .parity = 250,
                           .sum = sum};
    class Handler final : public LineHandler {
      public:
        void text(std::span<const std::byte>) override {}
        void damaged(std::uint64_t, std::size_t) override {}
        void frame(const Frame& frame) override {
            taken_ = parse_parity_frame(frame, parity_);
            total_ = parity_.layout.total;
        }
        ParityFrame parity_;
        std::uint32_t total_ = 0;
        bool taken_ = false;
    };
    const auto taken = [](std::uint32_t total, std::uint16_t groups, std::uint16_t group,
                          std::uint8_t parity, std::size_t size) {
        std::vector<std::byte> body(14 + size);
        const auto put = [&](std::size_t at, std::uint32_t value, std::size_t bytes) {
            for (std::size_t byte = 0; byte < bytes; ++byte)
                body[at + byte] = static_cast<std::byte>(value >> 8 * byte);
        };
        put(4, total, 4);
        put(8, groups, 2);
        put(10, group, 2);
        put(12, parity, 1);
        Wire wire;
        REQUIRE(write_frame(wire, Encoding::binary, FrameKind::parity, body) == KERN_SUCCESS);
        Handler handler;
        Line::Room<max_frame_body> room;
        Line line(handler, room);
        line.feed(wire.bytes_);
        return handler.taken_;
    };
    Wire wire;
    CHECK(write_parity_frame(wire, Encoding::binary, good) == KERN_SUCCESS);
    CHECK(taken(100, 3, 2, 250, 8));
    std::vector<ParityFrame> bad(6, good);
    bad[0].parity = 251;
    CHECK_FALSE(taken(100, 3, 2, 251, 8));
    bad[1].group = 3;
    CHECK_FALSE(taken(100, 3, 3, 0, 8));
    bad[2].layout.groups = 0;
    CHECK_FALSE(taken(100, 0, 0, 0, 8));
    bad[3].layout.groups = 14;
    CHECK_FALSE(taken(100, 14, 2, 0, 8));
    bad[4].layout.total = 0;
    CHECK_FALSE(taken(0, 1, 0, 0, 8));
    bad[5].sum = {};
    CHECK_FALSE(taken(100, 3, 2, 0, 0));
    CHECK_FALSE(taken(10000, 3, 2, 0, 513));
    CHECK_FALSE(taken(UINT32_MAX, 65535, 2, 0, 1));
    for (const ParityFrame& frame : bad)
        CHECK(write_parity_frame(wire, Encoding::binary, frame) == KERN_INVALID_ARGUMENT);
}

TEST_CASE("a sender does not begin with options that contradict each other") {
    const std::vector<std::byte> capture(1000, std::byte{1});
    Wire wire;
    for (const SenderOptions& options :
         {SenderOptions{.payload = 0}, SenderOptions{.payload = max_frame_payload + 1},
          SenderOptions{.repeats = 0}, SenderOptions{.payload = 513, .parity_percent = 1},
          SenderOptions{.payload = 512, .parity_percent = 101}}) {
        Sender sender(capture, wire, options);
        CHECK(sender.send_next() == KERN_INVALID_ARGUMENT);
    }
    CHECK(wire.bytes_.empty());
    Sender sender(capture, wire, {.payload = 512, .parity_percent = 100});
    CHECK(sender.send_all() == KERN_SUCCESS);
}

TEST_CASE("repeats send everything again, as text too") {
    std::mt19937 random(4);
    const auto capture = random_bytes(random, 1000);
    const auto once = all_frames(capture, {.payload = 100, .encoding = Encoding::text});
    const auto thrice =
        all_frames(capture, {.payload = 100, .encoding = Encoding::text, .repeats = 3});
    REQUIRE(thrice.size() == 3 * once.size());
    for (std::size_t frame = 0; frame < thrice.size(); ++frame)
        CHECK(thrice[frame] == once[frame % once.size()]);
    Recorder recorder;
    Receiver receiver(recorder);
    for (const auto& frame : thrice)
        receiver.feed(frame);
    CHECK(recorder.complete_.size() == 1);
}

TEST_CASE("one-way, over a line that damages 0.1 % of its bytes, 99 of 100 captures are complete") {
    struct Way {
        const char* name;
        SenderOptions options;
        bool enough;
    };
    const Way ways[] = {
        {"no redundancy, short frames", {.payload = 128}, false},
        {"everything three times", {.payload = 128, .repeats = 3}, false},
        {"parity frames (lossy_line)", lossy_line, true},
    };
    const bool campaign = std::getenv("LINK_CAPTURES") != nullptr;
    for (const Way& way : ways) {
        if (!way.enough && !campaign)
            continue;
        for (const std::size_t size : {1'000u, 5'000u, 20'000u, 100'000u}) {
            unsigned complete = 0;
            std::size_t sent = 0;
            // What is not enough is there to compare.
            const unsigned runs = !way.enough ? 20 : campaign ? 200 : 40;
            for (unsigned run = 0; run < runs; ++run) {
                std::mt19937_64 random(run + size);
                std::vector<std::byte> capture(size);
                for (std::byte& byte : capture)
                    byte = static_cast<std::byte>(random());
                Wire wire;
                Sender sender(capture, wire, way.options);
                REQUIRE(sender.send_all() == KERN_SUCCESS);
                sent = wire.bytes_.size();
                Recorder recorder;
                Receiver receiver(recorder);
                receiver.feed(damaged(random, wire.bytes_, 0.001));
                receiver.finish();
                REQUIRE(recorder.abandoned_.empty());
                if (recorder.complete_.empty())
                    continue;
                REQUIRE(recorder.complete_[0].bytes == capture);
                ++complete;
            }
            std::printf("# %s: %zu bytes, %u of %u complete, %.2f times the capture sent\n",
                        way.name, size, complete, runs,
                        static_cast<double>(sent) / static_cast<double>(size));
            if (way.enough)
                CHECK(complete * 100 >= runs * 99);
        }
    }
}
