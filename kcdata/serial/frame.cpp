#include "kcdata/serial/frame.hpp"

#include <array>
#include <cstring>

#include "kcdata/serial/crc32c.hpp"

namespace kcdata::serial {

namespace {

/// The header as it lies in the frame.
struct WireHeader {
    std::uint8_t zero;
    FrameKind kind;
    std::uint16_t length;
    std::uint32_t capture;
    std::uint32_t number;
    std::uint32_t offset;
    std::uint32_t total;
};
static_assert(sizeof(WireHeader) == frame_header_size);

/// Writes bytes with COBS to a sink: every run of up to 254 bytes without 0x00 goes out behind a
/// code byte, its length + 1; a code below 0xff also stands for the 0x00 behind the run.
class CobsWriter {
  public:
    explicit CobsWriter(ByteSink& sink) : sink_(sink) {}

    kern_return write(std::span<const std::byte> bytes) {
        for (std::byte byte : bytes) {
            if (byte != std::byte{0})
                run_[used_++] = byte;
            if (byte == std::byte{0} || used_ == run_.size()) {
                if (kern_return result = flush(); result != KERN_SUCCESS)
                    return result;
            }
        }
        return KERN_SUCCESS;
    }

    /// The last run; the 0x00 its code stands for is the end of the data.
    kern_return finish() { return after_full_run_ && used_ == 1 ? KERN_SUCCESS : flush(); }

  private:
    kern_return flush() {
        run_[0] = static_cast<std::byte>(used_);
        after_full_run_ = used_ == run_.size();
        const std::size_t size = used_;
        used_ = 1;
        return sink_.write(std::span(run_).first(size));
    }

    ByteSink& sink_;
    std::array<std::byte, 255> run_{};
    std::size_t used_ = 1;
    bool after_full_run_ = false;
};

constexpr bool numbers_fit(const Frame& frame) {
    if (frame.total == 0 || frame.offset > frame.total)
        return false;
    switch (frame.kind) {
        case FrameKind::data:
            return !frame.payload.empty() && frame.payload.size() <= max_frame_payload &&
                   frame.payload.size() <= frame.total - frame.offset;
        case FrameKind::end:
            return frame.payload.empty() && frame.offset == frame.total;
    }
    return false;
}

}  // namespace

kern_return write_frame(ByteSink& sink, const Frame& frame) {
    if (!numbers_fit(frame))
        return KERN_INVALID_ARGUMENT;
    const WireHeader header = {
        .zero = 0,
        .kind = frame.kind,
        .length = static_cast<std::uint16_t>(frame.payload.size()),
        .capture = frame.capture,
        .number = frame.number,
        .offset = frame.offset,
        .total = frame.total,
    };
    const auto header_bytes = std::as_bytes(std::span(&header, 1));
    Crc32c crc;
    crc.update(header_bytes);
    crc.update(frame.payload);
    const std::uint32_t crc_value = crc.value();
    const std::byte delimiter[1] = {std::byte{0}};

    CobsWriter cobs(sink);
    kern_return result = sink.write(delimiter);
    if (result == KERN_SUCCESS)
        result = cobs.write(header_bytes);
    if (result == KERN_SUCCESS)
        result = cobs.write(frame.payload);
    if (result == KERN_SUCCESS)
        result = cobs.write(std::as_bytes(std::span(&crc_value, 1)));
    if (result == KERN_SUCCESS)
        result = cobs.finish();
    if (result == KERN_SUCCESS)
        result = sink.write(delimiter);
    return result;
}

std::size_t frame_size(std::span<const std::byte, frame_header_size> bytes) {
    WireHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    return frame_header_size + header.length + frame_crc_size;
}

bool parse_frame(std::span<const std::byte> bytes, Frame& frame) {
    if (bytes.size() < frame_header_size + frame_crc_size)
        return false;
    if (bytes.size() != frame_size(bytes.first<frame_header_size>()))
        return false;
    const std::size_t checked = bytes.size() - frame_crc_size;
    std::uint32_t crc = 0;
    std::memcpy(&crc, bytes.data() + checked, sizeof(crc));
    if (crc32c(bytes.first(checked)) != crc)
        return false;

    WireHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const Frame parsed = {
        .kind = header.kind,
        .capture = header.capture,
        .number = header.number,
        .offset = header.offset,
        .total = header.total,
        .payload = bytes.subspan(frame_header_size, header.length),
    };
    if (header.zero != 0 || !numbers_fit(parsed))
        return false;
    frame = parsed;
    return true;
}

}  // namespace kcdata::serial
