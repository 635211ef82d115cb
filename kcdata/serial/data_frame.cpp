#include "kcdata/serial/data_frame.hpp"

#include <cstring>

namespace kcdata::serial {

namespace {

struct WireHead {
    std::uint32_t object;
    std::uint32_t offset;
    std::uint32_t total;
};
static_assert(sizeof(WireHead) == data_head_size);

constexpr bool numbers_fit(const DataFrame& frame) {
    if (frame.total == 0 || frame.offset > frame.total)
        return false;
    switch (frame.kind) {
        case FrameKind::data:
        case FrameKind::text_data:
            return !frame.payload.empty() && frame.payload.size() <= max_frame_payload &&
                   frame.payload.size() <= frame.total - frame.offset;
        case FrameKind::end:
            return frame.payload.empty() && frame.offset == frame.total;
        default:
            return false;
    }
}

}  // namespace

kern_return write_data_frame(ByteSink& sink, Encoding encoding, const DataFrame& frame) {
    if (!numbers_fit(frame))
        return KERN_INVALID_ARGUMENT;
    const WireHead head = {.object = frame.object, .offset = frame.offset, .total = frame.total};
    return write_frame(sink, encoding, frame.kind, std::as_bytes(std::span(&head, 1)),
                       frame.payload);
}

bool parse_data_frame(const Frame& frame, DataFrame& data) {
    if (frame.body.size() < data_head_size)
        return false;
    WireHead head;
    std::memcpy(&head, frame.body.data(), sizeof(head));
    const DataFrame parsed = {
        .kind = frame.kind,
        .object = head.object,
        .offset = head.offset,
        .total = head.total,
        .payload = frame.body.subspan(data_head_size),
    };
    if (!numbers_fit(parsed))
        return false;
    data = parsed;
    return true;
}

}  // namespace kcdata::serial
