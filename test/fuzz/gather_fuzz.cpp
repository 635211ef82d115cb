#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kcdata/serial/crc32c.hpp"
#include "kcdata/serial/receiver.hpp"

using namespace kcdata;
using namespace kcdata::serial;

namespace {

void check(bool holds) {
    if (!holds)
        std::abort();
}

constexpr std::size_t total = 1000;

/// The captures frames are cut from: two whose names are right, one whose name is not.
struct Captures {
    std::array<std::vector<std::byte>, 3> bytes;
    std::array<std::uint32_t, 3> names{};

    Captures() {
        for (std::size_t which = 0; which < bytes.size(); ++which) {
            for (std::size_t at = 0; at < total; ++at)
                bytes[which].push_back(static_cast<std::byte>(at * (which + 7) >> 3));
            names[which] = crc32c(bytes[which]);
        }
        names[2] ^= 1;
    }
};

class Feed final : public ByteSink {
  public:
    explicit Feed(Receiver& receiver) : receiver_(receiver) {}
    kern_return write(std::span<const std::byte> bytes) override {
        receiver_.feed(bytes);
        return KERN_SUCCESS;
    }

  private:
    Receiver& receiver_;
};

class Handler final : public ReceiverHandler {
  public:
    explicit Handler(const Captures& captures) : captures_(captures) {}
    void text(std::span<const std::byte>) override { std::abort(); }
    void complete(std::uint32_t capture, std::vector<std::byte> bytes) override {
        const auto which = static_cast<std::size_t>(
            std::find(captures_.names.begin(), captures_.names.end(), capture) -
            captures_.names.begin());
        check(which < 2);
        check(bytes == captures_.bytes[which]);
        check(!complete_[which]);
        complete_[which] = true;
    }
    void damaged(std::uint64_t, std::size_t) override { std::abort(); }
    void abandoned(const PartialCapture& capture, AbandonReason reason) override {
        check(reason == AbandonReason::wrong_crc);
        check(capture.progress.object == captures_.names[2]);
        wrong_ = true;
    }

    std::array<bool, 2> complete_{};
    bool wrong_ = false;

  private:
    const Captures& captures_;
};

}  // namespace

/// Four bytes a frame: which capture, where it is cut out, how long. Whatever overlaps or repeats,
/// the receiver has exactly the bytes that were sent.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Captures captures;
    Handler handler(captures);
    Receiver receiver(handler, {.max_total = total, .max_open = 3});
    Feed line(receiver);
    std::array<std::vector<bool>, 3> sent;
    for (auto& each : sent)
        each.resize(total);

    for (; size >= 4; data += 4, size -= 4) {
        const auto byte = [&](std::size_t index) { return std::size_t{data[index]}; };
        const std::size_t which = byte(0) % 3;
        const std::size_t offset = (byte(1) | byte(0) >> 4 << 8) % total;
        const std::size_t length = std::min(1 + (byte(2) | byte(3) << 8), total - offset);
        const bool end = (data[0] & 0xc) == 0xc;
        check(write_data_frame(
                  line, Encoding::binary,
                  {.kind = end ? FrameKind::end : FrameKind::data,
                   .object = captures.names[which],
                   .offset = static_cast<std::uint32_t>(end ? total : offset),
                   .total = total,
                   .payload = end ? std::span<const std::byte>()
                                  : std::span(captures.bytes[which]).subspan(offset, length)}) ==
              KERN_SUCCESS);
        if (!end)
            std::fill_n(sent[which].begin() + static_cast<std::ptrdiff_t>(offset), length, true);

        const bool whole =
            std::find(sent[which].begin(), sent[which].end(), false) == sent[which].end();
        if (which < 2) {
            check(handler.complete_[which] == whole);
        } else {
            check(handler.wrong_ == whole);
            if (whole) {
                handler.wrong_ = false;
                sent[which].assign(total, false);
            }
        }
    }

    for (const PartialCapture& capture : receiver.incomplete()) {
        const auto which = static_cast<std::size_t>(
            std::find(captures.names.begin(), captures.names.end(), capture.progress.object) -
            captures.names.begin());
        std::vector<bool> named(total, true);
        for (const Range& range : capture.missing) {
            check(range.length != 0);
            check(range.offset + range.length <= total);
            std::fill_n(named.begin() + range.offset, range.length, false);
        }
        check(named == sent[which]);
        const auto gap = std::find(named.begin(), named.end(), false);
        check(capture.bytes.size() == static_cast<std::size_t>(gap - named.begin()));
        check(
            std::equal(capture.bytes.begin(), capture.bytes.end(), captures.bytes[which].begin()));
    }
    return 0;
}
