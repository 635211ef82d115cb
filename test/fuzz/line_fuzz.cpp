#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "kcdata/serial/crc32c.hpp"
#include "kcdata/serial/receiver.hpp"

using namespace kcdata::serial;
using namespace std::string_literals;

namespace {

void check(bool holds) {
    if (!holds)
        std::abort();
}

/// All that is told, in order, with text joined up.
class Transcript final : public ReceiverHandler {
  public:
    void text(std::span<const std::byte> bytes) override {
        text_bytes_ += bytes.size();
        for (std::byte byte : bytes) {
            check(byte != std::byte{0});
            words_.push_back(static_cast<char>(byte));
        }
    }
    void complete(std::uint32_t capture, std::vector<std::byte> bytes) override {
        check(crc32c(bytes) == capture);
        words_ += "\0complete"s + std::to_string(capture);
    }
    void progress(const Progress& progress) override {
        check(progress.received <= progress.total);
        words_ += "\0progress"s + std::to_string(progress.received);
    }
    void damaged(std::uint64_t position, std::size_t size) override {
        check(position >= damaged_end_);
        check(size != 0);
        damaged_end_ = position + size;
        damaged_bytes_ += size;
        words_ += "\0damaged"s + std::to_string(position) + "+" + std::to_string(size);
    }
    void abandoned(const PartialCapture& capture, AbandonReason) override {
        words_ += "\0abandoned"s + std::to_string(capture.progress.object);
    }

    std::string words_;
    std::size_t text_bytes_ = 0;
    std::uint64_t damaged_end_ = 0;
    std::size_t damaged_bytes_ = 0;
};

}  // namespace

/// Any line: the result does not depend on how the input is cut, no byte is told twice, and what
/// is delivered as complete is what its name says. The first byte chooses the cutting.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0)
        return 0;
    const std::size_t chunk = std::size_t{1} + data[0];
    const auto line = std::as_bytes(std::span(data, size)).subspan(1);
    const Receiver::Limits limits{.max_total = 1u << 16, .max_open = 2};

    Transcript whole;
    Receiver one(whole, limits);
    one.feed(line);
    one.finish();

    Transcript parts;
    Receiver other(parts, limits);
    for (auto rest = line; !rest.empty(); rest = rest.subspan(std::min(chunk, rest.size())))
        other.feed(rest.first(std::min(chunk, rest.size())));
    other.finish();

    check(whole.words_ == parts.words_);
    check(whole.text_bytes_ + whole.damaged_bytes_ <= line.size());
    const auto open = one.incomplete();
    check(open.size() == other.incomplete().size());
    for (const PartialCapture& capture : open) {
        std::size_t missing = 0;
        for (const Range& range : capture.missing)
            missing += range.length;
        check(missing != 0);
        check(missing + capture.progress.received == capture.progress.total);
    }
    return 0;
}
