#include "kcdata/serial/sender.hpp"

#include <algorithm>

#include "kcdata/serial/crc32c.hpp"

namespace kcdata::serial {

Sender::Sender(std::span<const std::byte> capture, ByteSink& sink, std::size_t payload)
    : capture_(capture),
      sink_(sink),
      payload_(std::clamp(payload, std::size_t{1}, max_frame_payload)),
      id_(crc32c(capture)) {}

std::uint32_t Sender::frame_count() const {
    return static_cast<std::uint32_t>((capture_.size() + payload_ - 1) / payload_);
}

kern_return Sender::send_next() {
    if (done_ || capture_.empty() || capture_.size() > UINT32_MAX)
        return KERN_INVALID_ARGUMENT;
    const std::size_t offset = std::min(next_ * payload_, capture_.size());
    const bool at_end = offset == capture_.size();
    const DataFrame frame = {
        .kind = at_end ? FrameKind::end : FrameKind::data,
        .object = id_,
        .offset = static_cast<std::uint32_t>(offset),
        .total = static_cast<std::uint32_t>(capture_.size()),
        .payload = capture_.subspan(offset, std::min(payload_, capture_.size() - offset)),
    };
    if (kern_return result = write_data_frame(sink_, Encoding::binary, frame);
        result != KERN_SUCCESS)
        return result;
    if (at_end)
        done_ = true;
    else
        ++next_;
    return KERN_SUCCESS;
}

kern_return Sender::send_all() {
    do {
        if (kern_return result = send_next(); result != KERN_SUCCESS)
            return result;
    } while (!done_);
    return KERN_SUCCESS;
}

}  // namespace kcdata::serial
