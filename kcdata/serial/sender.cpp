#include "kcdata/serial/sender.hpp"

#include <algorithm>

#include "kcdata/serial/crc32c.hpp"

namespace kcdata::serial {

namespace {

/// Longer groups bear more for the same cost, and take longer to restore.
constexpr std::uint32_t most_frames_of_group = 128;
/// What a short group needs beyond its share: there chance varies most.
constexpr std::uint32_t spare_parities = 4;

}  // namespace

Sender::Sender(std::span<const std::byte> capture, ByteSink& sink, const SenderOptions& options)
    : capture_(capture),
      sink_(sink),
      options_(options),
      valid_(!capture.empty() && capture.size() <= UINT32_MAX && options.payload != 0 &&
             options.payload <= max_frame_payload && options.repeats != 0 &&
             options.parity_percent <= 100 &&
             (options.parity_percent == 0 || options.payload <= max_parity_payload)) {
    if (!valid_)
        return;
    id_ = crc32c(capture);
    frames_ = static_cast<std::uint32_t>((capture.size() - 1) / options.payload + 1);
    if (options.parity_percent == 0)
        return;
    layout_ = {.total = static_cast<std::uint32_t>(capture.size()),
               .payload = static_cast<std::uint32_t>(options.payload),
               .groups = (frames_ - 1) / most_frames_of_group + 1};
    const std::uint32_t longest = layout_.frames_of(0);
    parities_ = std::min((longest * options.parity_percent + 99) / 100 + spare_parities,
                         max_group_frames - longest);
}

kern_return Sender::send_next() {
    if (!valid_ || done())
        return KERN_INVALID_ARGUMENT;
    kern_return result = KERN_SUCCESS;
    if (next_ < frames_) {
        result = send_data();
    } else if (next_ < frames_ + parity_count()) {
        result = send_parity();
    } else {
        const auto total = static_cast<std::uint32_t>(capture_.size());
        result = write_data_frame(
            sink_, options_.encoding,
            {.kind = FrameKind::end, .object = id_, .offset = total, .total = total});
        if (result == KERN_SUCCESS) {
            next_ = 0;
            ++round_;
        }
        return result;
    }
    if (result == KERN_SUCCESS)
        ++next_;
    return result;
}

kern_return Sender::send_data() {
    const std::size_t offset = next_ * options_.payload;
    return write_data_frame(sink_, options_.encoding,
                            {.kind = FrameKind::data,
                             .object = id_,
                             .offset = static_cast<std::uint32_t>(offset),
                             .total = static_cast<std::uint32_t>(capture_.size()),
                             .payload = capture_.subspan(
                                 offset, std::min(options_.payload, capture_.size() - offset))});
}

kern_return Sender::send_parity() {
    const std::uint32_t number = next_ - frames_;
    // One of each group in turn: what is lost in one go is lost by many groups.
    const std::uint32_t group = number % layout_.groups;
    const std::uint32_t parity = number / layout_.groups;
    const auto sum = std::span(sum_).first(options_.payload);
    make_parity(capture_, layout_, group, parity, sum);
    return write_parity_frame(
        sink_, options_.encoding,
        {.object = id_, .layout = layout_, .group = group, .parity = parity, .sum = sum});
}

kern_return Sender::send_all() {
    do {
        if (kern_return result = send_next(); result != KERN_SUCCESS)
            return result;
    } while (!done());
    return KERN_SUCCESS;
}

}  // namespace kcdata::serial
