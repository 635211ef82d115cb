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
};
static_assert(sizeof(WireHeader) == frame_header_size);

/// Writes bytes with COBS to a sink: every run of up to 254 bytes without 0x00 goes out behind a
/// code byte, its length + 1; a code below 0xff also stands for the 0x00 behind the run.
class CobsWriter {
  public:
    explicit CobsWriter(ByteSink& sink) : sink_(sink) {}

    kern_return begin() { return sink_.write(delimiter); }
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
    kern_return end() {
        // The last run; the 0x00 its code stands for is the end of the data.
        if (!after_full_run_ || used_ != 1) {
            if (kern_return result = flush(); result != KERN_SUCCESS)
                return result;
        }
        return sink_.write(delimiter);
    }

  private:
    static constexpr std::array<std::byte, 1> delimiter{};

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

/// Writes bytes as base64, three as four characters.
class Base64Writer {
  public:
    explicit Base64Writer(ByteSink& sink) : sink_(sink) {}

    kern_return begin() {
        return sink_.write(std::as_bytes(std::span(text_frame_prefix, text_frame_prefix_size)));
    }
    kern_return write(std::span<const std::byte> bytes) {
        for (std::byte byte : bytes) {
            bits_ = bits_ << 8 | std::to_integer<std::uint32_t>(byte);
            bit_count_ += 8;
            for (; bit_count_ >= 6; bit_count_ -= 6) {
                if (kern_return result = put(bits_ >> (bit_count_ - 6)); result != KERN_SUCCESS)
                    return result;
            }
        }
        return KERN_SUCCESS;
    }
    kern_return end() {
        if (bit_count_ != 0) {
            if (kern_return result = put(bits_ << (6 - bit_count_)); result != KERN_SUCCESS)
                return result;
        }
        if (kern_return result = flush(); result != KERN_SUCCESS)
            return result;
        return sink_.write(std::as_bytes(std::span("\r\n", 2)));
    }

  private:
    static constexpr char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    kern_return put(std::uint32_t sextet) {
        characters_[used_++] = static_cast<std::byte>(alphabet[sextet & 63]);
        return used_ == characters_.size() ? flush() : KERN_SUCCESS;
    }
    kern_return flush() {
        const std::size_t size = used_;
        used_ = 0;
        return size == 0 ? KERN_SUCCESS : sink_.write(std::span(characters_).first(size));
    }

    ByteSink& sink_;
    std::array<std::byte, 64> characters_{};
    std::size_t used_ = 0;
    std::uint32_t bits_ = 0;  ///< of which the lowest bit_count_ are not written yet
    unsigned bit_count_ = 0;
};

template <typename Writer>
kern_return write_encoded(ByteSink& sink, std::span<const std::span<const std::byte>> parts) {
    Writer writer(sink);
    kern_return result = writer.begin();
    for (const auto& part : parts) {
        if (result == KERN_SUCCESS)
            result = writer.write(part);
    }
    if (result == KERN_SUCCESS)
        result = writer.end();
    return result == KERN_SUCCESS ? sink.end_frame() : result;
}

}  // namespace

kern_return write_frame(ByteSink& sink, Encoding encoding, FrameKind kind,
                        std::span<const std::byte> head, std::span<const std::byte> rest) {
    if (head.size() > max_frame_body || rest.size() > max_frame_body - head.size())
        return KERN_INVALID_ARGUMENT;
    const WireHeader header = {
        .zero = 0,
        .kind = kind,
        .length = static_cast<std::uint16_t>(head.size() + rest.size()),
    };
    const auto header_bytes = std::as_bytes(std::span(&header, 1));
    Crc32c crc;
    crc.update(header_bytes);
    crc.update(head);
    crc.update(rest);
    const std::uint32_t crc_value = crc.value();
    const std::span<const std::byte> parts[] = {header_bytes, head, rest,
                                                std::as_bytes(std::span(&crc_value, 1))};
    return encoding == Encoding::text ? write_encoded<Base64Writer>(sink, parts)
                                      : write_encoded<CobsWriter>(sink, parts);
}

std::size_t told_frame_size(std::span<const std::byte, frame_header_size> bytes) {
    WireHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    return frame_size(header.length);
}

bool parse_frame(std::span<const std::byte> bytes, Encoding encoding, Frame& frame) {
    if (bytes.size() < frame_size(0) ||
        bytes.size() != told_frame_size(bytes.first<frame_header_size>()))
        return false;
    const std::size_t checked = bytes.size() - frame_crc_size;
    std::uint32_t crc = 0;
    std::memcpy(&crc, bytes.data() + checked, sizeof(crc));
    WireHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (crc32c(bytes.first(checked)) != crc || header.zero != 0)
        return false;
    frame = {.kind = header.kind,
             .encoding = encoding,
             .body = bytes.subspan(frame_header_size, header.length)};
    return true;
}

}  // namespace kcdata::serial
