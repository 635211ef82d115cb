#include "kcdata/serial/target.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <vector>

#include "test/unit/kcdata/link_model.hpp"

using namespace kcdata;
using namespace kcdata::serial;

namespace {

/// A unikernel, to which frames are sent by hand, and what it sends.
class Subject final : private LineHandler {
  public:
    Subject()
        : target_(commands_, sent_, {.boot = 5, .baud_rate = 115200, .max_baud_rate = 3'000'000}) {}

    void send(const RequestHead& head, std::span<const std::byte> body,
              Encoding encoding = Encoding::binary) {
        MessageBuffer message;
        REQUIRE(encode_request(message, head, body));
        link_model::Told::File line;
        REQUIRE(write_frame(line, encoding, FrameKind::request, message.bytes()) == KERN_SUCCESS);
        target_.receive(line.bytes_, now_);
    }
    template <typename T>
    void send_value(Operation operation, std::uint32_t sequence, const T& body,
                    std::uint32_t session = 1) {
        send({.session = session, .sequence = sequence, .operation = operation},
             std::as_bytes(std::span(&body, 1)));
    }
    void send_text(Operation operation, std::uint32_t sequence, std::string_view text) {
        send({.session = 1, .sequence = sequence, .operation = operation},
             std::as_bytes(std::span(text)));
    }
    void hello(std::uint32_t session = 1) {
        send_value(Operation::hello, 1, HelloRequest{}, session);
    }
    void read(ReadRequest request, std::uint32_t session = 1) {
        MessageBuffer body;
        REQUIRE(encode_read(body, request, 200));
        send({.session = session, .sequence = request.name, .operation = Operation::read},
             body.bytes());
    }
    void read(std::uint32_t name, std::uint32_t first, std::vector<Range> ranges,
              std::uint8_t kept = 0) {
        ReadRequest request;
        request.name = name;
        request.first = first;
        request.payload = 64;
        request.kept = kept;
        for (const Range& range : ranges)
            request.ranges[request.count++] = range;
        read(request);
    }
    /// Sends all that is owed.
    void drain() {
        while (target_.owes())
            REQUIRE(target_.send_next() == KERN_SUCCESS);
    }
    struct Said {
        AnswerHead head;
        std::vector<std::byte> body;
    };
    /// The answers and the ranges of data since the last call.
    void look() {
        answers_.clear();
        ranges_.clear();
        encodings_.clear();
        kinds_.clear();
        Line line(*this, room_);
        line.feed(sent_.bytes_);
        line.finish();
        sent_.bytes_.clear();
    }

    link_model::Commands commands_;
    link_model::Told::File sent_;
    Target target_;
    std::uint64_t now_ = 1000;
    std::vector<Said> answers_;
    std::vector<Range> ranges_;
    std::vector<Encoding> encodings_;
    std::vector<FrameKind> kinds_;

  private:
    void text(std::span<const std::byte>) override { FAIL("text"); }
    void damaged(std::uint64_t, std::size_t) override { FAIL("damage"); }
    void frame(const Frame& frame) override {
        encodings_.push_back(frame.encoding);
        kinds_.push_back(frame.kind);
        Answer answer;
        DataFrame data;
        if (frame.kind == FrameKind::answer) {
            REQUIRE(decode_answer(frame.body, answer));
            answers_.push_back({answer.head, {answer.body.begin(), answer.body.end()}});
        } else {
            REQUIRE(parse_data_frame(frame, data));
            ranges_.push_back({data.offset, static_cast<std::uint32_t>(data.payload.size())});
        }
    }
    Line::Room<max_frame_body> room_;
};

link_model::Bytes counted(std::size_t size) {
    link_model::Bytes bytes;
    for (std::size_t index = 0; index < size; ++index)
        bytes.push_back(static_cast<std::byte>(index * 7));
    return bytes;
}

}  // namespace

TEST_CASE("a request is carried out once, and answered as often as it comes") {
    Subject subject;
    subject.hello();
    subject.commands_.next_capture_ = counted(100);
    subject.look();
    for (int times = 0; times < 3; ++times)
        subject.send_value(Operation::stackshot, 1, StackshotRequest{.flags = 9, .pid = 4});
    CHECK(subject.commands_.stackshots_ == 1);
    CHECK(subject.commands_.request_.flags == 9);
    CHECK(subject.commands_.request_.pid == 4);
    subject.look();
    // First of all it says that it is at work.
    REQUIRE(subject.answers_.size() == 4);
    CHECK(subject.answers_[0].head.state == AnswerState::working);
    for (std::size_t index = 1; index < 4; ++index) {
        CHECK(subject.answers_[index].head.state == AnswerState::done);
        CHECK(subject.answers_[index].head.sequence == 1);
        CHECK(subject.answers_[index].head.result == KERN_SUCCESS);
        ObjectDescription object;
        REQUIRE(decode_body(subject.answers_[index].body, object));
        CHECK(object == subject.commands_.objects_[0].description);
    }
    subject.send_value(Operation::stackshot, 2, StackshotRequest{});
    CHECK(subject.commands_.stackshots_ == 2);
}

TEST_CASE("a request from before the last one is ignored") {
    Subject subject;
    subject.hello();
    subject.send_text(Operation::run_workload, 2, "fleet");
    subject.look();
    subject.send_text(Operation::run_workload, 1, "kinds");
    subject.look();
    CHECK(subject.answers_.empty());
    CHECK(subject.commands_.running_ == "fleet");
    CHECK(subject.commands_.workloads_run_ == 1);
}

TEST_CASE("a hello of another session takes nothing away from this one") {
    Subject subject;
    subject.hello(1);
    subject.send_text(Operation::run_workload, 1, "fleet");
    for (std::uint32_t other = 2; other <= 4; ++other)
        subject.hello(other);
    subject.hello(1);
    subject.look();
    subject.send_text(Operation::run_workload, 1, "fleet");
    subject.look();
    REQUIRE(subject.answers_.size() == 1);
    CHECK(subject.answers_[0].head.result == KERN_SUCCESS);
    CHECK(subject.commands_.workloads_run_ == 1);
}

TEST_CASE("what cannot be done is refused with the error's name, and may be asked again") {
    Subject subject;
    subject.hello();
    subject.look();
    const auto result = [&](auto send) {
        send();
        subject.look();
        REQUIRE(subject.answers_.size() >= 1);
        return subject.answers_.back().head.result;
    };
    CHECK(result([&] { subject.send_value(Operation::release, 1, ReleaseRequest{5}); }) ==
          KERN_NOT_IN_SET);
    CHECK(result([&] { subject.send_value(Operation::release, 2, std::uint8_t{5}); }) ==
          KERN_INVALID_ARGUMENT);
    CHECK(result([&] { subject.send_value(static_cast<Operation>(99), 3, std::uint8_t{5}); }) ==
          KERN_NOT_SUPPORTED);
    CHECK(result([&] { subject.send_text(Operation::retained, 4, ""); }) == KERN_NOT_IN_SET);
    CHECK(result([&] { subject.send_text(Operation::run_workload, 5, ""); }) ==
          KERN_INVALID_ARGUMENT);
    CHECK(result([&] { subject.send_text(Operation::stop_workload, 6, "other"); }) ==
          KERN_NOT_IN_SET);
    CHECK(result([&] {
              subject.send_value(Operation::baud_rate, 7, BaudRateRequest{4'000'000});
          }) == KERN_INVALID_VALUE);
    CHECK(subject.commands_.rates_.empty());
    subject.commands_.stackshot_error_ = KERN_RESOURCE_SHORTAGE;
    CHECK(result([&] { subject.send_value(Operation::stackshot, 8, StackshotRequest{}); }) ==
          KERN_RESOURCE_SHORTAGE);
    // That would mean that the session is not known.
    subject.commands_.stackshot_error_ = KERN_INVALID_OBJECT;
    CHECK(result([&] { subject.send_value(Operation::stackshot, 9, StackshotRequest{}); }) ==
          KERN_FAILURE);
    CHECK(result([&] { subject.send_text(Operation::reboot, 10, "now"); }) ==
          KERN_INVALID_ARGUMENT);
    CHECK(subject.commands_.reboots_ == 0);
    // Of a session nobody opened.
    CHECK(result([&] { subject.send_value(Operation::tasks, 1, std::uint8_t{}, 77); }) ==
          KERN_INVALID_OBJECT);
    CHECK(result([&] {
              subject.send_value(Operation::hello, 1, HelloRequest{.version = 2}, 78);
          }) == KERN_NOT_SUPPORTED);
}

TEST_CASE("a reboot and a power off are answered before they happen") {
    Subject subject;
    subject.hello();
    subject.look();
    subject.send_text(Operation::reboot, 1, "");
    subject.look();
    REQUIRE(!subject.answers_.empty());
    CHECK(subject.answers_[0].head.result == KERN_SUCCESS);
    CHECK(subject.commands_.reboots_ == 1);
    subject.send_text(Operation::power_off, 2, "");
    CHECK(subject.commands_.power_offs_ == 1);
    // Once, too.
    subject.send_text(Operation::power_off, 2, "");
    CHECK(subject.commands_.power_offs_ == 1);
}

TEST_CASE("granted ranges are sent in their order, once, in frames of the length asked for") {
    Subject subject;
    const auto object = subject.commands_.add(counted(1000), ObjectKind::capture);
    subject.hello();
    subject.look();
    CHECK_FALSE(subject.target_.owes());
    for (int times = 0; times < 2; ++times)
        subject.read(object.name, 1, {{320, 160}, {0, 64}});
    // The next request repeats the second.
    subject.read(object.name, 2, {{0, 64}, {960, 64}}, 1);
    subject.drain();
    subject.look();
    CHECK(subject.ranges_ ==
          std::vector<Range>{{320, 64}, {384, 64}, {448, 32}, {0, 64}, {960, 40}});
    CHECK(subject.answers_.empty());
    subject.read(object.name, 1, {{320, 160}, {0, 64}});
    CHECK_FALSE(subject.target_.owes());
}

TEST_CASE("grants that are not kept are off") {
    Subject subject;
    const auto object = subject.commands_.add(counted(1000), ObjectKind::capture);
    subject.hello();
    subject.look();
    subject.read(object.name, 1, {{0, 640}});
    REQUIRE(subject.target_.send_next() == KERN_SUCCESS);
    subject.read(object.name, 2, {{640, 64}}, 1);
    REQUIRE(subject.target_.send_next() == KERN_SUCCESS);
    subject.read(object.name, 3, {{128, 64}}, 0);
    subject.drain();
    subject.look();
    CHECK(subject.ranges_ == std::vector<Range>{{0, 64}, {64, 64}, {128, 64}});
}

TEST_CASE("a new host program is not sent what an earlier one had asked for") {
    Subject subject;
    const auto object = subject.commands_.add(counted(1000), ObjectKind::capture);
    subject.hello(1);
    subject.read(object.name, 1, {{0, 960}});
    subject.hello(1);
    CHECK(subject.target_.owes());
    subject.hello(2);
    CHECK_FALSE(subject.target_.owes());
}

TEST_CASE("reading what is not there is refused, and what was granted of it is off") {
    Subject subject;
    const auto object = subject.commands_.add(counted(1000), ObjectKind::capture);
    subject.hello();
    subject.look();
    subject.read(object.name + 1, 1, {{0, 32}});
    subject.look();
    REQUIRE(subject.answers_.size() == 1);
    CHECK(subject.answers_[0].head.operation == Operation::read);
    CHECK(subject.answers_[0].head.result == KERN_NOT_IN_SET);
    CHECK(subject.answers_[0].head.sequence == object.name + 1);
    subject.read(object.name, 1, {{1024, 32}});
    subject.look();
    REQUIRE(subject.answers_.size() == 1);
    CHECK(subject.answers_[0].head.result == KERN_INVALID_ARGUMENT);

    subject.read(object.name, 2, {{0, 640}});
    REQUIRE(subject.commands_.release(object.name) == KERN_SUCCESS);
    subject.look();
    REQUIRE(subject.target_.send_next() == KERN_SUCCESS);
    subject.look();
    CHECK_FALSE(subject.target_.owes());
    REQUIRE(subject.answers_.size() == 1);
    CHECK(subject.answers_[0].head.result == KERN_NOT_IN_SET);
}

TEST_CASE("everything is encoded as the session's last request was") {
    Subject subject;
    const auto object = subject.commands_.add(counted(100), ObjectKind::capture);
    const HelloRequest hello;
    subject.send({.session = 1, .sequence = 1, .operation = Operation::hello},
                 std::as_bytes(std::span(&hello, 1)), Encoding::text);
    subject.send({.session = 1, .sequence = 1, .operation = Operation::tasks}, {}, Encoding::text);
    ReadRequest request;
    request.name = object.name;
    request.first = 1;
    request.payload = 128;
    request.ranges[request.count++] = {0, 128};
    MessageBuffer body;
    REQUIRE(encode_read(body, request, 200));
    subject.send({.session = 1, .sequence = 1, .operation = Operation::read}, body.bytes(),
                 Encoding::text);
    subject.drain();
    subject.look();
    CHECK(subject.encodings_ == std::vector<Encoding>(3, Encoding::text));
    subject.hello();
    subject.look();
    CHECK(subject.encodings_ == std::vector<Encoding>(1, Encoding::binary));
}

TEST_CASE("a capture and a long answer go out as different kinds of frames") {
    Subject subject;
    subject.hello();
    const auto text = subject.commands_.add(counted(32), ObjectKind::text);
    const auto capture = subject.commands_.add(counted(33), ObjectKind::capture);
    subject.look();
    subject.read(text.name, 1, {{0, 32}});
    subject.drain();
    subject.read(capture.name, 2, {{0, 32}});
    subject.drain();
    subject.look();
    CHECK(subject.kinds_ == std::vector<FrameKind>{FrameKind::text_data, FrameKind::data});
}

TEST_CASE("a rate at which nobody is heard is given up after the trial") {
    Subject subject;
    subject.hello();
    subject.send_value(Operation::baud_rate, 1, BaudRateRequest{921600});
    CHECK(subject.commands_.rates_ == std::vector<std::uint32_t>{921600});
    REQUIRE(subject.target_.deadline() == subject.now_ + Target::trial_time);
    subject.target_.tick(subject.now_ + Target::trial_time - 1);
    CHECK(subject.target_.baud_rate() == 921600);
    subject.target_.tick(subject.now_ + Target::trial_time);
    CHECK(subject.target_.baud_rate() == 115200);
    CHECK(subject.commands_.rates_ == std::vector<std::uint32_t>{921600, 115200});
    CHECK_FALSE(subject.target_.deadline());
    // Who asks again is not told that it went well.
    subject.look();
    subject.send_value(Operation::baud_rate, 1, BaudRateRequest{921600});
    subject.look();
    REQUIRE(subject.answers_.size() == 1);
    CHECK(subject.answers_[0].head.result == KERN_OPERATION_TIMED_OUT);
    CHECK(subject.commands_.rates_.size() == 2);
}

TEST_CASE("at another rate than the first, silence ends in the first one") {
    Subject subject;
    subject.hello();
    subject.send_value(Operation::baud_rate, 1, BaudRateRequest{921600});
    subject.now_ += Target::trial_time - 1;
    subject.hello();
    subject.now_ += Target::silence_time - 1;
    subject.target_.tick(subject.now_);
    CHECK(subject.target_.baud_rate() == 921600);
    // On trial from one rate to the next, it is the one before that it goes back to.
    subject.send_value(Operation::baud_rate, 2, BaudRateRequest{1'500'000});
    subject.now_ += Target::trial_time;
    subject.target_.tick(subject.now_);
    CHECK(subject.target_.baud_rate() == 921600);
    subject.now_ += Target::silence_time;
    subject.target_.tick(subject.now_);
    CHECK(subject.target_.baud_rate() == 115200);
    CHECK_FALSE(subject.target_.deadline());
}

TEST_CASE("what the sink refuses is sent again") {
    class Full final : public ByteSink {
      public:
        kern_return write(std::span<const std::byte>) override {
            return full_ ? KERN_OPERATION_TIMED_OUT : KERN_SUCCESS;
        }
        kern_return end_frame() override {
            ++frames_;
            return KERN_SUCCESS;
        }
        bool full_ = false;
        unsigned frames_ = 0;
    } sink;
    link_model::Commands commands;
    const auto object = commands.add(counted(100), ObjectKind::capture);
    Target target(commands, sink, {});
    const auto send = [&](Operation operation, std::span<const std::byte> body) {
        MessageBuffer message;
        REQUIRE(
            encode_request(message, {.session = 1, .sequence = 1, .operation = operation}, body));
        link_model::Told::File line;
        REQUIRE(write_frame(line, Encoding::binary, FrameKind::request, message.bytes()) ==
                KERN_SUCCESS);
        target.receive(line.bytes_, 1);
    };
    const HelloRequest hello;
    send(Operation::hello, std::as_bytes(std::span(&hello, 1)));
    ReadRequest request;
    request.name = object.name;
    request.first = 1;
    request.payload = 128;
    request.ranges[request.count++] = {0, 128};
    MessageBuffer body;
    REQUIRE(encode_read(body, request, 200));
    send(Operation::read, body.bytes());
    sink.full_ = true;
    CHECK(target.send_next() == KERN_OPERATION_TIMED_OUT);
    CHECK(target.owes());
    sink.full_ = false;
    CHECK(target.send_next() == KERN_SUCCESS);
    CHECK_FALSE(target.owes());
    CHECK(sink.frames_ == 2);
}

TEST_CASE("console input that is no request is passed on") {
    Subject subject;
    const std::string_view typed = "hello\r";
    subject.target_.receive(std::as_bytes(std::span(typed)), 1);
    CHECK(subject.commands_.text_ == typed);
}
