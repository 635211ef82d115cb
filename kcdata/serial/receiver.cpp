#include "kcdata/serial/receiver.hpp"

#include <algorithm>

namespace kcdata::serial {

Receiver::Receiver(ReceiverHandler& handler, Limits limits)
    : handler_(handler), limits_(limits), line_(*this, line_room_) {}

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
    DataFrame data;
    ParityFrame parity;
    const bool is_parity = parse_parity_frame(frame, parity);
    if (!is_parity && (frame.kind == FrameKind::text_data || !parse_data_frame(frame, data)))
        return;
    const Key key =
        is_parity ? Key{parity.object, parity.layout.total} : Key{data.object, data.total};
    if (std::find(ignored_.begin(), ignored_.end(), key) != ignored_.end())
        return;
    if (key.second > limits_.max_total) {
        ignore(key);
        PartialCapture refused;
        refused.progress = {.object = key.first, .total = key.second};
        refused.missing.push_back({.offset = 0, .length = key.second});
        handler_.abandoned(refused, AbandonReason::too_long);
        return;
    }

    const auto capture = open(key);
    Gathering& gathering = capture->gathering;
    const std::uint32_t received_before = gathering.received();
    if (is_parity) {
        capture->repair.take(parity, gathering);
    } else if (data.kind == FrameKind::end) {
        capture->end_seen = true;
    } else if (gathering.store(data.offset, data.payload) != 0) {
        capture->repair.take(Range{data.offset, static_cast<std::uint32_t>(data.payload.size())},
                             gathering);
    }
    if (gathering.received() != received_before || frame.kind == FrameKind::end)
        handler_.progress(progress_of(*capture));
    if (!gathering.complete())
        return;

    if (gathering.verified()) {
        std::vector<std::byte> bytes = gathering.bytes();
        open_.erase(capture);
        ignore(key);
        handler_.complete(key.first, std::move(bytes));
    } else {
        const PartialCapture wrong = partial(*capture);
        open_.erase(capture);
        handler_.abandoned(wrong, AbandonReason::wrong_crc);
    }
}

std::list<Receiver::Open>::iterator Receiver::open(const Key& key) {
    auto found = std::find_if(open_.begin(), open_.end(), [&](const Open& one) {
        return Key{one.gathering.object(), one.gathering.total()} == key;
    });
    if (found != open_.end())
        return found;
    if (open_.size() >= std::max(limits_.max_open, std::size_t{1})) {
        const PartialCapture oldest = partial(open_.front());
        open_.pop_front();
        handler_.abandoned(oldest, AbandonReason::too_many);
    }
    return open_.insert(open_.end(), Open{.gathering = Gathering(key.first, key.second)});
}

Progress Receiver::progress_of(const Open& capture) {
    return {.object = capture.gathering.object(),
            .total = capture.gathering.total(),
            .received = capture.gathering.received(),
            .end_seen = capture.end_seen};
}

void Receiver::ignore(const Key& key) {
    if (ignored_.size() == remembered)
        ignored_.pop_front();
    ignored_.push_back(key);
}

PartialCapture Receiver::partial(const Open& capture) {
    return {.progress = progress_of(capture),
            .missing = capture.gathering.missing(),
            .bytes = capture.gathering.bytes()};
}

std::vector<PartialCapture> Receiver::incomplete() const {
    std::vector<PartialCapture> result;
    for (const Open& capture : open_)
        result.push_back(partial(capture));
    return result;
}

}  // namespace kcdata::serial
