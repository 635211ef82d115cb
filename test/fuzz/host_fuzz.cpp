#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "kcdata/serial/crc32c.hpp"
#include "kcdata/serial/host.hpp"

using namespace kcdata;
using namespace kcdata::serial;

namespace {

void check(bool holds) {
    if (!holds)
        std::abort();
}

constexpr std::uint32_t session = 1;

/// The object that is pulled, and one whose bytes are not what its name says.
struct Objects {
    std::vector<std::byte> bytes;
    ObjectDescription right, wrong;

    Objects() {
        for (std::size_t at = 0; at < 3000; ++at)
            bytes.push_back(static_cast<std::byte>(at * 13 >> 3));
        right = describe_object(bytes, ObjectKind::capture, 0);
        wrong = right;
        ++wrong.name;
    }
};

class Handler final : public HostHandler {
  public:
    explicit Handler(const Objects& objects) : objects_(objects) {}
    void text(std::span<const std::byte> bytes) override {
        check(std::find(bytes.begin(), bytes.end(), std::byte{0}) == bytes.end());
    }
    void connected(const HelloAnswer& answer) override {
        check(answer.version == protocol_version);
    }
    void answered(const Answer& answer) override {
        check(answer.head.state == AnswerState::done);
        check(answer.head.result != KERN_INVALID_OBJECT);
    }
    void pulled(const ObjectDescription& object, std::vector<std::byte> bytes) override {
        check(object == objects_.right);
        check(bytes == objects_.bytes);
    }
    void piece(const DataFrame& frame) override {
        check(frame.offset + frame.payload.size() <= frame.total);
    }
    void progress(const Progress& progress) override { check(progress.received <= progress.total); }
    void failed(LinkError error, kern_return) override { check(link_error_text(error) != nullptr); }
    bool set_baud_rate(std::uint32_t baud_rate) override { return baud_rate != 7; }

  private:
    const Objects& objects_;
};

/// Whatever the host says is whole frames with requests in them.
class Said final : public ByteSink, private LineHandler {
  public:
    Said() : line_(*this, room_) {}
    kern_return write(std::span<const std::byte> bytes) override {
        line_.feed(bytes);
        return KERN_SUCCESS;
    }

  private:
    void text(std::span<const std::byte>) override { std::abort(); }
    void damaged(std::uint64_t, std::size_t) override { std::abort(); }
    void frame(const Frame& frame) override {
        Request request;
        check(frame.kind == FrameKind::request && decode_request(frame.body, request));
        check(request.head.session == session);
        ReadRequest read;
        if (request.head.operation == Operation::read) {
            check(decode_read(request.body, read));
            for (std::size_t index = 0; index < read.count; ++index)
                check(read.ranges[index].offset < 3000);
        }
    }
    Line::Room<max_frame_body> room_;
    Line line_;
};

class Bytes final : public ByteSink {
  public:
    kern_return write(std::span<const std::byte> bytes) override {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        return KERN_SUCCESS;
    }
    std::vector<std::byte> bytes_;
};

}  // namespace

/// Steps of a byte that says what, a byte that says how many bytes, and these: bytes of the line,
/// answers whose numbers are small, data frames of the object; what the host program asks for; or
/// time passes. Whatever comes, what is delivered is right, and everything ends.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Objects objects;
    Handler handler(objects);
    Said said;
    HostOptions options;
    options.heartbeat = size % 2 == 0 ? 0 : options.heartbeat;
    Host host(handler, said, session, options);
    std::uint64_t now = 1;
    host.connect(now);
    auto rest = std::as_bytes(std::span(data, size));
    while (rest.size() >= 2) {
        const auto what = std::to_integer<unsigned>(rest[0]);
        const auto length = std::min(std::to_integer<std::size_t>(rest[1]), rest.size() - 2);
        const auto bytes = rest.subspan(2, length);
        const auto byte = [&](std::size_t index) {
            return index < bytes.size() ? std::to_integer<std::uint32_t>(bytes[index]) : 0;
        };
        rest = rest.subspan(2 + length);
        Bytes line;
        switch (what & 7) {
            case 0:
                host.receive(bytes, now);
                break;
            case 1: {
                MessageBuffer message;
                AnswerHead head = {.session = session,
                                   .sequence = byte(0),
                                   .operation = static_cast<Operation>(byte(1)),
                                   .state = static_cast<AnswerState>(what >> 3 & 1),
                                   .result = static_cast<kern_return>(byte(2))};
                if (head.operation == Operation::read)
                    head.sequence = objects.right.name;
                if (encode_answer(message, head, bytes.subspan(std::min<std::size_t>(3, length))))
                    check(write_frame(line, Encoding::binary, FrameKind::answer, message.bytes()) ==
                          KERN_SUCCESS);
                break;
            }
            case 2: {
                MessageBuffer message;
                const HelloAnswer hello = {.version = 1 + (what >> 7),
                                           .boot = 1 + byte(1),
                                           .baud_rate = byte(2) * 1000,
                                           .max_baud_rate = 0,
                                           .max_payload = byte(3) * 16};
                check(encode_answer(
                    message,
                    {.session = session, .sequence = byte(0), .operation = Operation::hello},
                    std::as_bytes(std::span(&hello, 1))));
                check(write_frame(line, Encoding::text, FrameKind::answer, message.bytes()) ==
                      KERN_SUCCESS);
                break;
            }
            case 3: {
                const ObjectDescription& object = (what & 8) != 0 ? objects.wrong : objects.right;
                const std::uint32_t offset = (byte(0) << 4 | byte(1) >> 4) % object.size;
                const std::uint32_t count = std::min(1 + (byte(2) << 2), object.size - offset);
                check(write_data_frame(
                          line, Encoding::binary,
                          {.object = object.name,
                           .offset = offset,
                           .total = object.size,
                           .payload = std::span(objects.bytes).subspan(offset, count)}) ==
                      KERN_SUCCESS);
                break;
            }
            case 4:
                now += std::uint64_t{what >> 3} * 40'000 + byte(0) * 100'000;
                host.tick(now);
                break;
            case 5:
                (void)host.request(static_cast<Operation>(what >> 3), bytes, now);
                break;
            case 6:
                if ((what & 8) != 0)
                    host.resume(bytes);
                else
                    (void)host.pull((what & 16) != 0 ? objects.wrong : objects.right, now);
                break;
            case 7:
                if ((what & 8) != 0)
                    host.connect(now);
                else if ((what & 16) != 0)
                    host.cancel_pull();
                else
                    (void)host.change_baud_rate(byte(0), now);
                break;
        }
        host.receive(line.bytes_, now);
    }
    // Nobody answers any more: in a bounded time, and after a bounded number of tries, it is over.
    const std::uint64_t end = now + 400'000'000;
    for (std::size_t ticks = 0; host.busy(); ++ticks) {
        const auto due = host.deadline();
        check(due && ticks < 100'000);
        now = std::max(now, *due);
        check(now < end);
        host.tick(now);
    }
    return 0;
}
