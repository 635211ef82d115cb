#include "kcdata/serial/parity.hpp"

#include <algorithm>
#include <cstring>

namespace kcdata::serial {

namespace {

struct WireHead {
    std::uint32_t object;
    std::uint32_t total;
    std::uint16_t groups;
    std::uint16_t group;
    std::uint8_t parity;
    std::uint8_t reserved;
};
constexpr std::size_t wire_head_size = 14;
static_assert(wire_head_size == parity_head_size);
static_assert(offsetof(WireHead, reserved) == wire_head_size - 1);

bool numbers_fit(const ParityFrame& frame) {
    const ParityLayout& layout = frame.layout;
    return layout.total != 0 && layout.payload != 0 && layout.payload <= max_parity_payload &&
           layout.payload == frame.sum.size() && layout.groups != 0 &&
           layout.groups <= UINT16_MAX && layout.groups <= layout.frames() &&
           frame.group < layout.groups &&
           layout.frames_of(frame.group) + frame.parity < max_group_frames;
}

}  // namespace

void Gf256::add_multiple(std::span<std::byte> sum, std::uint8_t factor,
                         std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); ++at)
        sum[at] ^= std::byte{multiply(factor, std::to_integer<std::uint8_t>(bytes[at]))};
}

kern_return write_parity_frame(ByteSink& sink, Encoding encoding, const ParityFrame& frame) {
    if (!numbers_fit(frame))
        return KERN_INVALID_ARGUMENT;
    const WireHead head = {.object = frame.object,
                           .total = frame.layout.total,
                           .groups = static_cast<std::uint16_t>(frame.layout.groups),
                           .group = static_cast<std::uint16_t>(frame.group),
                           .parity = static_cast<std::uint8_t>(frame.parity),
                           .reserved = 0};
    return write_frame(sink, encoding, FrameKind::parity,
                       std::as_bytes(std::span(&head, 1)).first(wire_head_size), frame.sum);
}

bool parse_parity_frame(const Frame& frame, ParityFrame& parity) {
    if (frame.kind != FrameKind::parity || frame.body.size() < wire_head_size)
        return false;
    WireHead head;
    std::memcpy(&head, frame.body.data(), wire_head_size);
    const auto sum = frame.body.subspan(wire_head_size);
    const ParityFrame parsed = {.object = head.object,
                                .layout = {.total = head.total,
                                           .payload = static_cast<std::uint32_t>(sum.size()),
                                           .groups = head.groups},
                                .group = head.group,
                                .parity = head.parity,
                                .sum = sum};
    if (!numbers_fit(parsed))
        return false;
    parity = parsed;
    return true;
}

void make_parity(std::span<const std::byte> capture, const ParityLayout& layout,
                 std::uint32_t group, std::uint32_t parity, std::span<std::byte> sum) {
    std::fill(sum.begin(), sum.end(), std::byte{0});
    for (std::uint32_t index = 0; index < layout.frames_of(group); ++index) {
        const std::uint32_t frame = layout.frame(group, index);
        Gf256::add_multiple(sum, parity_factor(parity, index),
                            capture.subspan(layout.offset(frame), layout.length(frame)));
    }
}

}  // namespace kcdata::serial
