#include "kcdata/serial/receiver.hpp"

#include <algorithm>

#include "kcdata/serial/crc32c.hpp"

namespace kcdata::serial {

Receiver::Receiver(ReceiverHandler& handler, Limits limits)
    : handler_(handler), limits_(limits), line_(*this) {}

void Receiver::feed(std::span<const std::byte> bytes) {
    line_.feed(bytes);
}

void Receiver::finish() {
    line_.finish();
}

void Receiver::text(std::span<const std::byte> bytes) {
    handler_.text(bytes);
}

void Receiver::damaged(std::uint64_t position, std::size_t size) {
    handler_.damaged(position, size);
}

void Receiver::frame(const Frame& frame) {
    const Key key{frame.capture, frame.total};
    if (std::find(ignored_.begin(), ignored_.end(), key) != ignored_.end())
        return;
    if (frame.total > limits_.max_total) {
        ignore(key);
        PartialCapture refused;
        refused.progress = {.capture = frame.capture, .total = frame.total};
        refused.missing.push_back({.offset = 0, .length = frame.total});
        handler_.abandoned(refused, AbandonReason::too_long);
        return;
    }

    const auto capture = open(key);
    const std::uint32_t received_before = capture->received;
    if (frame.kind == FrameKind::end)
        capture->frame_count = frame.number;
    else
        store(*capture, frame);
    if (frame.kind == FrameKind::end || capture->received != received_before)
        handler_.progress(progress_of(*capture));
    if (capture->received != frame.total)
        return;

    std::vector<std::byte> bytes = bytes_of(*capture);
    if (crc32c(bytes) == frame.capture) {
        open_.erase(capture);
        ignore(key);
        handler_.complete(frame.capture, std::move(bytes));
    } else {
        const PartialCapture wrong = partial(*capture);
        open_.erase(capture);
        handler_.abandoned(wrong, AbandonReason::wrong_crc);
    }
}

std::list<Receiver::Open>::iterator Receiver::open(const Key& key) {
    auto found =
        std::find_if(open_.begin(), open_.end(), [&](const Open& one) { return one.key == key; });
    if (found != open_.end())
        return found;
    if (open_.size() >= std::max(limits_.max_open, std::size_t{1})) {
        const PartialCapture oldest = partial(open_.front());
        open_.pop_front();
        handler_.abandoned(oldest, AbandonReason::too_many);
    }
    return open_.insert(open_.end(), Open{.key = key});
}

void Receiver::store(Open& capture, const Frame& frame) {
    const std::uint32_t end = frame.offset + static_cast<std::uint32_t>(frame.payload.size());
    std::uint32_t at = frame.offset;
    auto next = capture.pieces.upper_bound(at);
    if (next != capture.pieces.begin())
        at = std::max(at, end_of(*std::prev(next)));
    // Only what is not there yet goes into the gaps between the pieces.
    while (at < end) {
        const bool bounded = next != capture.pieces.end() && next->first < end;
        const std::uint32_t gap_end = bounded ? next->first : end;
        if (at < gap_end) {
            const auto bytes = frame.payload.subspan(at - frame.offset, gap_end - at);
            capture.pieces.emplace_hint(next, at,
                                        Piece{frame.number, {bytes.begin(), bytes.end()}});
            capture.received += gap_end - at;
        }
        if (!bounded)
            return;
        at = end_of(*next);
        ++next;
    }
}

std::uint32_t Receiver::end_of(const std::pair<const std::uint32_t, Piece>& piece) {
    return piece.first + static_cast<std::uint32_t>(piece.second.bytes.size());
}

Progress Receiver::progress_of(const Open& capture) {
    return {.capture = capture.key.first,
            .total = capture.key.second,
            .received = capture.received,
            .end_seen = capture.frame_count.has_value()};
}

std::vector<std::byte> Receiver::bytes_of(const Open& capture) {
    std::vector<std::byte> bytes;
    for (const auto& [offset, piece] : capture.pieces) {
        if (offset != bytes.size())
            break;
        bytes.insert(bytes.end(), piece.bytes.begin(), piece.bytes.end());
    }
    return bytes;
}

void Receiver::ignore(const Key& key) {
    if (ignored_.size() == remembered)
        ignored_.pop_front();
    ignored_.push_back(key);
}

std::vector<MissingRange> Receiver::missing_of(const Open& capture) {
    std::vector<MissingRange> missing;
    std::uint32_t at = 0;
    std::uint32_t first = 0;
    const auto gap_up_to = [&](std::uint32_t end, std::optional<std::uint32_t> behind) {
        if (at == end)
            return;
        MissingRange range{.offset = at, .length = end - at};
        if (behind && *behind > first) {
            range.first_frame = first;
            range.last_frame = *behind - 1;
        }
        missing.push_back(range);
    };
    for (const auto& entry : capture.pieces) {
        gap_up_to(entry.first, entry.second.number);
        at = end_of(entry);
        first = entry.second.number + 1;
    }
    gap_up_to(capture.key.second, capture.frame_count);
    return missing;
}

PartialCapture Receiver::partial(const Open& capture) {
    return {.progress = progress_of(capture),
            .missing = missing_of(capture),
            .bytes = bytes_of(capture)};
}

std::vector<PartialCapture> Receiver::incomplete() const {
    std::vector<PartialCapture> result;
    for (const Open& capture : open_)
        result.push_back(partial(capture));
    return result;
}

}  // namespace kcdata::serial
