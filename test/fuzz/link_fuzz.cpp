#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "kcdata/serial/target.hpp"

using namespace kcdata;
using namespace kcdata::serial;

namespace {

void check(bool holds) {
    if (!holds)
        std::abort();
}

constexpr std::uint32_t first_rate = 115200;

/// The unikernel's side: two objects, and what it is told is checked.
class Commands final : public TargetCommands {
  public:
    Commands() {
        for (std::size_t at = 0; at < bytes_.size(); ++at)
            bytes_[at] = static_cast<std::byte>(at * 11 >> 2);
        // Names that a fuzzer finds: they need not be right here.
        capture_ = {.name = 1, .size = 5000};
        text_ = {.name = 2, .size = 33, .kind = ObjectKind::text};
    }
    Result<ObjectDescription> take_stackshot(const StackshotRequest&) override { return capture_; }
    Result<ObjectDescription> retrieve_retained() override { return KERN_NOT_IN_SET; }
    std::size_t list_captures(std::span<ObjectDescription, max_listed> list) override {
        std::fill(list.begin(), list.end(), capture_);
        return list.size();
    }
    kern_return release(std::uint32_t name) override {
        if (name != text_.name || text_.size == 0)
            return KERN_NOT_IN_SET;
        text_.size = 0;
        return KERN_SUCCESS;
    }
    Result<ObjectDescription> write_text(Operation) override {
        text_.size = 33;
        return text_;
    }
    kern_return run_workload(std::string_view text) override { return look_at(text); }
    kern_return stop_workload(std::string_view text) override { return look_at(text); }
    kern_return check_baud_rate(std::uint32_t baud_rate) override {
        if (baud_rate < 9600 || baud_rate > 3'000'000)
            return KERN_INVALID_VALUE;
        checked_rate_ = baud_rate;
        return KERN_SUCCESS;
    }
    void set_baud_rate(std::uint32_t baud_rate) override {
        check(baud_rate == checked_rate_ || baud_rate == rate_before_ || baud_rate == first_rate);
        rate_before_ = rate_;
        rate_ = baud_rate;
    }
    void reboot() override {}
    void power_off() override {}
    std::span<const std::byte> object(std::uint32_t name, ObjectKind& kind) override {
        for (const ObjectDescription* one : {&capture_, &text_}) {
            if (one->name == name) {
                kind = one->kind;
                return std::span(bytes_).first(one->size);
            }
        }
        return {};
    }
    void text(std::span<const std::byte> bytes) override {
        check(std::find(bytes.begin(), bytes.end(), std::byte{0}) == bytes.end());
    }

    std::array<std::byte, 5000> bytes_{};
    ObjectDescription capture_, text_;

  private:
    kern_return look_at(std::string_view text) {
        check(!text.empty() && text.size() <= max_request_text);
        for (char character : text)
            check(character >= ' ' && character <= '~');
        return KERN_SUCCESS;
    }
    std::uint32_t rate_ = first_rate, rate_before_ = first_rate, checked_rate_ = first_rate;
};

/// All that is sent must be whole frames: answers, and bytes of an object as it is.
class Sent final : public ByteSink, private LineHandler {
  public:
    explicit Sent(Commands& commands) : commands_(commands), line_(*this, room_) {}
    kern_return write(std::span<const std::byte> bytes) override {
        line_.feed(bytes);
        return KERN_SUCCESS;
    }
    std::uint64_t data_ = 0;

  private:
    void text(std::span<const std::byte>) override { std::abort(); }
    void damaged(std::uint64_t, std::size_t) override { std::abort(); }
    void frame(const Frame& frame) override {
        Answer answer;
        DataFrame data;
        if (frame.kind == FrameKind::answer) {
            check(decode_answer(frame.body, answer));
            return;
        }
        check(parse_data_frame(frame, data));
        check(data.kind == FrameKind::data || data.kind == FrameKind::text_data);
        ObjectKind kind{};
        const auto object = commands_.object(data.object, kind);
        check(data.total == object.size());
        check(data.offset + data.payload.size() <= object.size());
        check(std::equal(data.payload.begin(), data.payload.end(), object.begin() + data.offset));
        data_ += data.payload.size();
    }

    Commands& commands_;
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

/// Steps of a byte that says what, a byte that says how many bytes, and these: bytes of the line as
/// they are, a frame that holds them, or a request whose operation, session and sequence are small
/// numbers; or time passes, or frames are sent. Whatever arrives, what is sent is whole and true.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Commands commands;
    Sent sent(commands);
    Target target(commands, sent, {.boot = 1, .baud_rate = first_rate});
    std::uint64_t now = 0;
    auto rest = std::as_bytes(std::span(data, size));
    while (rest.size() >= 2) {
        const auto what = std::to_integer<unsigned>(rest[0]);
        const auto length = std::min(std::to_integer<std::size_t>(rest[1]), rest.size() - 2);
        const auto bytes = rest.subspan(2, length);
        rest = rest.subspan(2 + length);
        const Encoding encoding = (what & 0x80) != 0 ? Encoding::text : Encoding::binary;
        Bytes line;
        switch (what & 7) {
            case 0:
                target.receive(bytes, now);
                break;
            case 1:
                check(write_frame(line, encoding, static_cast<FrameKind>(what >> 3 & 7), bytes) ==
                      KERN_SUCCESS);
                target.receive(line.bytes_, now);
                break;
            case 2:
                now += (std::uint64_t{what >> 3} + 1) * 500'000;
                target.tick(now);
                break;
            case 3:
                for (unsigned count = what >> 3; count != 0; --count)
                    check(target.send_next() == KERN_SUCCESS);
                break;
            default: {
                if (bytes.size() < 2)
                    break;
                MessageBuffer message;
                if (!encode_request(
                        message,
                        {.session = std::to_integer<std::uint32_t>(bytes[0]) >> 5,
                         .sequence = std::to_integer<std::uint32_t>(bytes[0]) & 31,
                         .operation = static_cast<Operation>(std::to_integer<unsigned>(bytes[1]))},
                        bytes.subspan(2)))
                    break;
                check(write_frame(line, encoding, FrameKind::request, message.bytes()) ==
                      KERN_SUCCESS);
                for (const std::byte& byte : line.bytes_)
                    target.receive(std::span(&byte, 1), now);
            }
        }
    }
    // What is owed comes to an end.
    for (std::size_t frames = 0; target.owes(); ++frames) {
        check(frames < 128 * commands.bytes_.size() / read_unit + 128);
        check(target.send_next() == KERN_SUCCESS);
    }
    return 0;
}
