#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <vector>

#include "kcdata/serial/host.hpp"
#include "kcdata/serial/receiver.hpp"
#include "kcdata/serial/target.hpp"
#include "test/unit/kcdata/link_model.hpp"

using namespace kcdata;
using namespace kcdata::serial;
using link_model::Link;
using link_model::Time;

namespace {

constexpr Time second = 1'000'000;

link_model::Bytes random_capture(std::uint32_t seed, std::size_t size) {
    std::mt19937 random(seed);
    link_model::Bytes bytes(size);
    for (std::byte& byte : bytes)
        byte = static_cast<std::byte>(random());
    return bytes;
}

/// Everything is lost from now on, in the directions given.
void cut(Link& link, bool to_host, bool to_target) {
    link.to_host_.damage_.cuts_per_second = to_host ? 1 : 0;
    link.to_target_.damage_.cuts_per_second = to_target ? 1 : 0;
    for (auto* wire : {&link.to_host_, &link.to_target_}) {
        wire->damage_.cut_time = 1'000'000'000 * second;
        wire->begin_cut(wire->damage_.cuts_per_second > 0);
    }
}

/// Makes a request and waits for its end.
void ask(Link& link, Operation operation, std::string_view body = {}) {
    REQUIRE(link.host_->request(operation, std::as_bytes(std::span(body)), link.now_) ==
            KERN_SUCCESS);
    REQUIRE(link.settle(200 * second));
}

}  // namespace

TEST_CASE("host and unikernel meet, and say what they are") {
    Link link({});
    REQUIRE(link.connect());
    CHECK(link.told_.connected_ == 1);
    CHECK(link.told_.hello_.boot == 1);
    CHECK(link.told_.hello_.baud_rate == 115200);
    CHECK(link.told_.hello_.max_baud_rate == 3'000'000);
    CHECK(link.host_->connected());
}

TEST_CASE("before it is connected, and while it is busy, the host takes no request") {
    Link link({});
    const ObjectDescription object{.name = 1, .size = 2};
    CHECK(link.host_->request(Operation::tasks, {}, 0) == KERN_NOT_IN_SET);
    CHECK(link.host_->pull(object, 0) == KERN_NOT_IN_SET);
    REQUIRE(link.connect());
    CHECK(link.host_->request(Operation::hello, {}, link.now_) == KERN_INVALID_ARGUMENT);
    CHECK(link.host_->request(Operation::read, {}, link.now_) == KERN_INVALID_ARGUMENT);
    const link_model::Bytes huge(max_message_size);
    CHECK(link.host_->request(Operation::tasks, huge, link.now_) == KERN_INVALID_ARGUMENT);
    CHECK(link.host_->pull({}, link.now_) == KERN_INVALID_ARGUMENT);
    REQUIRE(link.host_->request(Operation::tasks, {}, link.now_) == KERN_SUCCESS);
    CHECK(link.host_->request(Operation::trace, {}, link.now_) == KERN_LOCK_OWNED);
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    CHECK(link.host_->pull(object, link.now_) == KERN_LOCK_OWNED);
    CHECK(link.host_->change_baud_rate(9600, link.now_) == KERN_LOCK_OWNED);
}

TEST_CASE("a long answer is an object that is pulled") {
    Link link({});
    REQUIRE(link.connect());
    ask(link, Operation::tasks);
    REQUIRE(link.told_.answers_.size() == 1);
    ObjectDescription object;
    REQUIRE(decode_body(link.told_.answers_[0].body, object));
    CHECK(object.kind == ObjectKind::text);
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    REQUIRE(link.settle(10 * second));
    REQUIRE(link.told_.objects_.size() == 1);
    CHECK(link.told_.objects_[0].bytes == link.commands_.objects_[0].bytes);
}

TEST_CASE("console text goes on between frames, both ways") {
    Link link({});
    REQUIRE(link.connect());
    const auto object = link.commands_.add(random_capture(1, 30000), ObjectKind::capture);
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    std::string printed;
    std::string typed;
    while (link.host_->busy()) {
        link.run([] { return false; }, second / 10);
        const std::string_view line = "[  1.000] tick\r\n";
        (void)link.to_host_.write(std::as_bytes(std::span(line)));
        printed += line;
        (void)link.to_target_.write(std::as_bytes(std::span("k", 1)));
        typed += 'k';
    }
    link.run([] { return false; }, second);
    REQUIRE(link.told_.objects_.size() == 1);
    CHECK(link.told_.text_ == printed);
    CHECK(link.commands_.text_ == typed);
    CHECK(link.told_.damaged_ == 0);
    CHECK(link.host_->statistics().payload_repeated == 0);
}

TEST_CASE("an answer that is lost is given again, and the request carried out once") {
    Link link({});
    REQUIRE(link.connect());
    cut(link, true, false);
    link.commands_.next_capture_ = random_capture(2, 100);
    const StackshotRequest request;
    REQUIRE(link.host_->request(Operation::stackshot, std::as_bytes(std::span(&request, 1)),
                                link.now_) == KERN_SUCCESS);
    link.run([] { return false; }, 3 * second);
    CHECK(link.told_.answers_.empty());
    cut(link, false, false);
    REQUIRE(link.settle(10 * second));
    REQUIRE(link.told_.answers_.size() == 1);
    CHECK(link.told_.answers_[0].head.result == KERN_SUCCESS);
    CHECK(link.commands_.stackshots_ == 1);
    CHECK(link.host_->statistics().retries >= 3);
}

TEST_CASE("the line is kept busy: 97 of 100 bytes it could carry are bytes of the object") {
    for (const std::uint32_t rate : {115'200u, 921'600u, 3'000'000u}) {
        // Five seconds of the line, and ends that take some milliseconds to hear of each other.
        const std::size_t size = rate / 2;
        Link link({.baud_rate = rate, .damage = {.latency = 2'000, .read_time = 8'000}});
        REQUIRE(link.connect());
        const auto object = link.commands_.add(random_capture(16, size), ObjectKind::capture);
        const Time begin = link.now_;
        REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
        REQUIRE(link.settle(60 * second));
        REQUIRE(link.told_.objects_.size() == 1);
        INFO(rate << " baud: " << link.now_ - begin << " us");
        CHECK((link.now_ - begin) * 97 <= 100 * 5 * second);
        CHECK(link.host_->statistics().payload_repeated == 0);
    }
}

TEST_CASE("a lost frame is sent again, and nothing else") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Link link({.seed = seed});
        REQUIRE(link.connect());
        const auto object = link.commands_.add(random_capture(3, 100'000), ObjectKind::capture);
        REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
        // Somewhere, but in a full-sized frame.
        link.run([] { return false; }, second * 2 + seed * second / 5);
        link.to_host_.damage_.bytes_per_million = 1e6;
        const auto sent = link.to_host_.sent_;
        link.run([&] { return link.to_host_.sent_ > sent; }, second);
        link.to_host_.damage_.bytes_per_million = 0;
        REQUIRE(link.settle(60 * second));
        REQUIRE(link.told_.objects_.size() == 1);
        CHECK(link.told_.objects_[0].bytes == link.commands_.objects_[0].bytes);
        CHECK(link.host_->statistics().payload_repeated == 0);
        CHECK(link.host_->statistics().frames_lost == 1);
        // The object, its frames, and one frame again.
        CHECK(link.to_host_.sent_ < 100'000 * 102 / 100 + max_frame_size_on_line);
    }
}

TEST_CASE("never are more bytes on their way than were granted") {
    Link link({});
    REQUIRE(link.connect());
    const auto object = link.commands_.add(random_capture(4, 200'000), ObjectKind::capture);
    const auto before = link.to_host_.sent_;
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    // The host takes nothing any more: what was granted comes, and no more.
    const auto requests = [&] {
        const Time until = link.now_ + 60 * second;
        link_model::Bytes waiting;
        while (link.now_ < until) {
            link.now_ += 1000;
            for (const auto& bytes : link.to_target_.take())
                link.target_->receive(bytes, link.now_);
            if (link.target_->owes() && link.to_host_.free() <= link.now_)
                (void)link.target_->send_next();
        }
    };
    requests();
    const auto sent = link.to_host_.sent_ - before;
    CHECK(sent > 1000);
    CHECK(sent < 16'000);
    // Then it goes on, and nothing was lost.
    REQUIRE(link.settle(60 * second));
    REQUIRE(link.told_.objects_.size() == 1);
    CHECK(link.host_->statistics().payload_repeated == 0);
    CHECK(link.host_->statistics().frames_lost == 0);
}

TEST_CASE("a host program that begins anew pulls what is missing, and nothing else") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Link link({.seed = seed, .damage = {.bytes_per_million = 200}});
        REQUIRE(link.connect());
        const auto object = link.commands_.add(random_capture(5, 60'000), ObjectKind::capture);
        REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
        REQUIRE(link.run([&] { return link.host_->statistics().payload_received > 3000 * seed; },
                         60 * second));
        const auto partial = link.told_.partial_.bytes_;
        const auto had = link.told_.pieces_;
        std::vector<bool> there(60'000);
        for (const Range& range : had)
            std::fill_n(there.begin() + range.offset, range.length, true);

        link.start_host(0x1000 + static_cast<std::uint32_t>(seed));
        link.host_->resume(partial);
        REQUIRE(link.connect());
        // It finds the capture by itself.
        ask(link, Operation::captures);
        std::array<ObjectDescription, max_listed> list;
        std::size_t count = 0;
        REQUIRE(decode_list(link.told_.answers_.back().body, list, count));
        REQUIRE(count == 1);
        CHECK(list[0] == object);
        REQUIRE(link.host_->pull(list[0], link.now_) == KERN_SUCCESS);
        REQUIRE(link.settle(60 * second));
        REQUIRE(link.told_.objects_.size() == 1);
        CHECK(link.told_.objects_[0].bytes == link.commands_.objects_[0].bytes);
        CHECK(link.host_->statistics().payload_received ==
              static_cast<std::uint64_t>(std::count(there.begin(), there.end(), false)));
        for (const Range& piece : link.told_.pieces_)
            for (const Range& range : had)
                REQUIRE((piece.offset + piece.length <= range.offset ||
                         range.offset + range.length <= piece.offset));
    }
}

TEST_CASE("what a host program keeps of an unfinished pull is what extract reads") {
    Link link({});
    REQUIRE(link.connect());
    const auto object = link.commands_.add(random_capture(6, 20'000), ObjectKind::capture);
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    REQUIRE(
        link.run([&] { return link.host_->statistics().payload_received > 8000; }, 60 * second));
    class Handler final : public ReceiverHandler {
      public:
        void text(std::span<const std::byte>) override { FAIL("text"); }
        void complete(std::uint32_t, std::vector<std::byte>) override { ++complete_; }
        void damaged(std::uint64_t, std::size_t) override { FAIL("damage"); }
        void abandoned(const PartialCapture&, AbandonReason) override { FAIL("abandoned"); }
        unsigned complete_ = 0;
    } handler;
    Receiver receiver(handler);
    receiver.feed(link.told_.partial_.bytes_);
    REQUIRE(receiver.incomplete().size() == 1);
    CHECK(receiver.incomplete()[0].progress.received == link.host_->statistics().payload_received);
    REQUIRE(link.settle(60 * second));
    Receiver all(handler);
    all.feed(link.told_.partial_.bytes_);
    CHECK(handler.complete_ == 1);
}

TEST_CASE("a pull that failed goes on where it was") {
    Link link({});
    REQUIRE(link.connect());
    const auto object = link.commands_.add(random_capture(7, 50'000), ObjectKind::capture);
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    REQUIRE(
        link.run([&] { return link.host_->statistics().payload_received > 20'000; }, 60 * second));
    cut(link, true, true);
    REQUIRE(link.settle(60 * second));
    REQUIRE(link.told_.errors_.size() == 1);
    CHECK(link.told_.errors_[0].error == LinkError::no_answer);
    CHECK_FALSE(link.host_->connected());
    cut(link, false, false);
    REQUIRE(link.connect());
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    REQUIRE(link.settle(60 * second));
    REQUIRE(link.told_.objects_.size() == 1);
    CHECK(link.told_.objects_[0].bytes == link.commands_.objects_[0].bytes);
    CHECK(link.host_->statistics().payload_received == 50'000);
}

TEST_CASE("frames of another object and of another session are ignored") {
    Link link({});
    REQUIRE(link.connect());
    const auto object = link.commands_.add(random_capture(8, 500), ObjectKind::capture);
    const auto other = link.commands_.add(random_capture(9, 500), ObjectKind::capture);
    const auto bytes = link.commands_.objects_[1].bytes;
    REQUIRE(link.host_->request(Operation::tasks, {}, link.now_) == KERN_SUCCESS);
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    link_model::Told::File line;
    REQUIRE(write_data_frame(line, Encoding::binary,
                             {.object = other.name, .offset = 0, .total = 500, .payload = bytes}) ==
            KERN_SUCCESS);
    MessageBuffer message;
    for (const std::uint32_t session : {8u, 3u}) {
        for (const std::uint32_t sequence : {0u, 2u}) {
            REQUIRE(encode_answer(
                message, {.session = session, .sequence = sequence, .operation = Operation::tasks},
                {}));
            REQUIRE(write_frame(line, Encoding::binary, FrameKind::answer, message.bytes()) ==
                    KERN_SUCCESS);
        }
    }
    link.host_->receive(line.bytes_, link.now_);
    CHECK(link.told_.answers_.empty());
    CHECK(link.told_.pieces_.empty());
    REQUIRE(link.settle(60 * second));
    REQUIRE(link.told_.objects_.size() == 1);
    CHECK(link.told_.objects_[0].description == object);
    REQUIRE(link.told_.answers_.size() == 1);
    CHECK(link.told_.answers_[0].head.sequence == 1);
}

TEST_CASE("an object that is gone ends its pull with a name, and nothing else") {
    Link link({});
    REQUIRE(link.connect());
    const auto object = link.commands_.add(random_capture(10, 50'000), ObjectKind::capture);
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    REQUIRE(
        link.run([&] { return link.host_->statistics().payload_received > 8000; }, 60 * second));
    link.commands_.objects_.clear();
    REQUIRE(link.settle(60 * second));
    REQUIRE(link.told_.errors_.size() == 1);
    CHECK(link.told_.errors_[0].error == LinkError::refused);
    CHECK(link.told_.errors_[0].result == KERN_NOT_IN_SET);
    CHECK(link.host_->connected());
    ask(link, Operation::tasks);
    CHECK(link.told_.answers_.size() == 1);
}

TEST_CASE("bytes that are not what their name says are not delivered") {
    Link link({});
    REQUIRE(link.connect());
    const auto object = link.commands_.add(random_capture(11, 500), ObjectKind::capture);
    link.commands_.objects_[0].bytes[100] ^= std::byte{1};
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    REQUIRE(link.settle(60 * second));
    CHECK(link.told_.objects_.empty());
    REQUIRE(link.told_.errors_.size() == 1);
    CHECK(link.told_.errors_[0].error == LinkError::wrong_crc);
    // What is right this time is not mixed with it.
    link.commands_.objects_[0].bytes[100] ^= std::byte{1};
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    REQUIRE(link.settle(60 * second));
    CHECK(link.told_.objects_.size() == 1);
}

TEST_CASE("a unikernel that was started again is noticed, asked or not") {
    Link link({});
    REQUIRE(link.connect());
    link.start_target(2);
    SECTION("by the heartbeat") {
        REQUIRE(link.run([&] { return !link.told_.errors_.empty(); }, 10 * second));
    }
    SECTION("by a request, which is not carried out") {
        REQUIRE(link.host_->request(Operation::run_workload, std::as_bytes(std::span("abc", 3)),
                                    link.now_) == KERN_SUCCESS);
        REQUIRE(link.run([&] { return !link.told_.errors_.empty(); }, 10 * second));
        CHECK(link.commands_.workloads_run_ == 0);
    }
    SECTION("by a pull") {
        const auto object = link.commands_.add(random_capture(12, 500), ObjectKind::capture);
        REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
        REQUIRE(link.run([&] { return !link.told_.errors_.empty(); }, 10 * second));
    }
    CHECK(link.told_.errors_[0].error == LinkError::target_restarted);
    REQUIRE(link.run([&] { return link.host_->connected(); }, 10 * second));
    ask(link, Operation::tasks);
    CHECK(link.told_.answers_.size() == 1);
}

TEST_CASE("an idle line is asked for a sign of life, and its end is told") {
    Link link({});
    REQUIRE(link.connect());
    const auto sent = link.to_target_.sent_;
    link.run([] { return false; }, 20 * second);
    CHECK(link.to_target_.sent_ - sent >= 9 * frame_size_on_line(12));
    CHECK(link.to_target_.sent_ - sent < 12 * frame_size_on_line(20));
    CHECK(link.told_.errors_.empty());
    cut(link, false, true);
    REQUIRE(link.run([&] { return !link.told_.errors_.empty(); }, 15 * second));
    CHECK(link.told_.errors_[0].error == LinkError::no_answer);
}

TEST_CASE("the unikernel may work on a request for longer than it may be silent") {
    Link link({});
    REQUIRE(link.connect());
    REQUIRE(link.host_->request(Operation::tasks, {}, link.now_) == KERN_SUCCESS);
    cut(link, true, true);
    link_model::Told::File line;
    MessageBuffer message;
    const auto answer = [&](AnswerState state) {
        line.bytes_.clear();
        REQUIRE(encode_answer(
            message, {.session = 3, .sequence = 1, .operation = Operation::tasks, .state = state},
            {}));
        REQUIRE(write_frame(line, Encoding::binary, FrameKind::answer, message.bytes()) ==
                KERN_SUCCESS);
        link.host_->receive(line.bytes_, link.now_);
    };
    answer(AnswerState::working);
    link.run([] { return false; }, 100 * second);
    CHECK(link.told_.errors_.empty());
    answer(AnswerState::done);
    CHECK(link.told_.answers_.size() == 1);
    // But not for ever.
    REQUIRE(link.host_->request(Operation::tasks, {}, link.now_) == KERN_SUCCESS);
    link.run([] { return false; }, 130 * second);
    CHECK(link.told_.errors_.size() == 1);
}

TEST_CASE("the rate of the line is changed at both ends") {
    Link link({});
    REQUIRE(link.connect());
    REQUIRE(link.host_->change_baud_rate(3'000'000, link.now_) == KERN_SUCCESS);
    CHECK(link.host_->pull({.name = 1, .size = 1}, link.now_) == KERN_LOCK_OWNED);
    CHECK(link.host_->request(Operation::tasks, {}, link.now_) == KERN_LOCK_OWNED);
    REQUIRE(link.run([&] { return !link.told_.answers_.empty(); }, 10 * second));
    CHECK(link.told_.answers_[0].head.result == KERN_SUCCESS);
    CHECK(link.commands_.rates_ == std::vector<std::uint32_t>{3'000'000});
    CHECK(link.told_.rates_ == std::vector<std::uint32_t>{3'000'000});
    const auto object = link.commands_.add(random_capture(13, 600'000), ObjectKind::capture);
    const Time begin = link.now_;
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    REQUIRE(link.settle(60 * second));
    REQUIRE(link.told_.objects_.size() == 1);
    // 300,000 bytes a second.
    CHECK(link.now_ - begin < 3 * second);
    // It stays like that as long as somebody is there.
    link.run([] { return false; }, 60 * second);
    CHECK(link.told_.errors_.empty());
    CHECK(link.commands_.rates_.size() == 1);
}

TEST_CASE("a rate the unikernel refuses is not tried") {
    Link link({});
    REQUIRE(link.connect());
    REQUIRE(link.host_->change_baud_rate(4'000'000, link.now_) == KERN_SUCCESS);
    REQUIRE(link.run([&] { return !link.told_.answers_.empty(); }, 10 * second));
    CHECK(link.told_.answers_[0].head.result == KERN_INVALID_VALUE);
    CHECK(link.told_.rates_.empty());
    ask(link, Operation::tasks);
}

TEST_CASE("a rate that does not work is taken back at both ends") {
    Link link({});
    REQUIRE(link.connect());
    SECTION("the line does not carry it") {
        REQUIRE(link.host_->change_baud_rate(921600, link.now_) == KERN_SUCCESS);
        REQUIRE(link.run([&] { return !link.told_.rates_.empty(); }, 10 * second));
        cut(link, true, true);
        REQUIRE(link.run([&] { return link.told_.rates_.size() == 2; }, 10 * second));
        cut(link, false, false);
    }
    SECTION("the unikernel hears the host, but the host nothing") {
        REQUIRE(link.host_->change_baud_rate(921600, link.now_) == KERN_SUCCESS);
        REQUIRE(link.run([&] { return !link.told_.rates_.empty(); }, 10 * second));
        cut(link, true, false);
        REQUIRE(link.run([&] { return link.told_.rates_.size() == 2; }, 10 * second));
        cut(link, false, false);
    }
    REQUIRE(link.run([&] { return !link.told_.errors_.empty(); }, 30 * second));
    CHECK(link.told_.errors_[0].error == LinkError::baud_rate);
    CHECK(link.told_.rates_ == std::vector<std::uint32_t>{921600, 115200});
    CHECK(link.commands_.rates_ == std::vector<std::uint32_t>{921600, 115200});
    CHECK(link.host_->connected());
    ask(link, Operation::tasks);
    CHECK(link.told_.answers_.size() == 1);
}

TEST_CASE("where the answer to a change of rate is lost, both ends stay at the old one") {
    Link link({});
    REQUIRE(link.connect());
    cut(link, true, false);
    REQUIRE(link.host_->change_baud_rate(921600, link.now_) == KERN_SUCCESS);
    REQUIRE(link.run([&] { return !link.commands_.rates_.empty(); }, 10 * second));
    cut(link, false, false);
    REQUIRE(link.run([&] { return !link.told_.answers_.empty(); }, 10 * second));
    CHECK(link.told_.answers_[0].head.result == KERN_OPERATION_TIMED_OUT);
    CHECK(link.told_.rates_.empty());
    CHECK(link.commands_.rates_ == std::vector<std::uint32_t>{921600, 115200});
    ask(link, Operation::tasks);
}

TEST_CASE("a new host program finds the line at its first rate, whatever the last one did") {
    Link link({});
    REQUIRE(link.connect());
    REQUIRE(link.host_->change_baud_rate(921600, link.now_) == KERN_SUCCESS);
    REQUIRE(link.run([&] { return !link.told_.answers_.empty(); }, 10 * second));
    link.start_host(99);
    link.to_host_.receiver_rate_ = 115200;
    link.to_target_.sender_rate_ = 115200;
    REQUIRE(link.connect());
    CHECK(link.commands_.rates_ == std::vector<std::uint32_t>{921600, 115200});
}

TEST_CASE("text frames get through a line that is not 8-bit clean") {
    class SevenBits final : public ByteSink {
      public:
        explicit SevenBits(ByteSink& line) : line_(line) {}
        kern_return write(std::span<const std::byte> bytes) override {
            for (std::byte byte : bytes) {
                // A console: no control characters but CR and LF, no eighth bit.
                const auto code = std::to_integer<unsigned>(byte);
                strange_ += (code < 0x20 && code != '\r' && code != '\n') || code >= 0x7f ? 1u : 0u;
            }
            return line_.write(bytes);
        }
        ByteSink& line_;
        unsigned strange_ = 0;
    };
    Link link({.damage = {.bytes_per_million = 300}, .host = {.encoding = Encoding::text}});
    SevenBits to_host(link.to_host_);
    SevenBits to_target(link.to_target_);
    link.target_.emplace(link.commands_, to_host, Target::Options{.boot = 1, .baud_rate = 115200});
    link.host_.emplace(link.told_, to_target, 5, link.options_.host);
    REQUIRE(link.connect());
    ask(link, Operation::run_workload, "fleet");
    const auto object = link.commands_.add(random_capture(14, 30'000), ObjectKind::capture);
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    REQUIRE(link.settle(60 * second));
    REQUIRE(link.told_.objects_.size() == 1);
    CHECK(link.told_.objects_[0].bytes == link.commands_.objects_[0].bytes);
    CHECK(to_host.strange_ == 0);
    CHECK(to_target.strange_ == 0);
}

TEST_CASE("on a line that loses 10 percent everything ends with an error, not with a hang") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Link link({.seed = seed});
        REQUIRE(link.connect());
        const auto object = link.commands_.add(random_capture(15, 100'000), ObjectKind::capture);
        REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
        link.run([] { return false; }, second);
        link.set_damage({.bytes_per_million = 100'000, .reads_per_thousand = 2});
        REQUIRE(link.settle(60 * second));
        REQUIRE(!link.told_.errors_.empty());
        const LinkError error = link.told_.errors_[0].error;
        CHECK((error == LinkError::too_lossy || error == LinkError::no_answer));
        link.host_->connect(link.now_);
        REQUIRE(link.settle(60 * second));
    }
}
