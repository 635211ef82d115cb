#include "kcdata/serial/line.hpp"

#include <algorithm>

namespace kcdata::serial {

namespace {

constexpr std::byte zero{0};
/// Frames begin with a zero byte, which COBS turns into this code.
constexpr std::byte first_code{1};

}  // namespace

void Line::feed(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        if (state_ == State::text) {
            const auto end = std::find(bytes.begin(), bytes.end(), zero);
            const auto size = static_cast<std::size_t>(end - bytes.begin());
            if (size != 0)
                handler_.text(bytes.first(size));
            position_ += size;
            bytes = bytes.subspan(size);
            if (bytes.empty())
                return;
            state_ = State::after_zero;
        } else if (state_ == State::after_zero && bytes[0] != zero && bytes[0] != first_code) {
            state_ = State::text;
            continue;
        } else {
            take(bytes[0]);
        }
        ++position_;
        bytes = bytes.subspan(1);
    }
}

void Line::finish() {
    if (state_ == State::frame || state_ == State::skip)
        end_damage(position_, State::text);
    state_ = State::text;
}

void Line::take(std::byte byte) {
    switch (state_) {
        case State::text:
            break;
        case State::after_zero:
            if (byte == first_code) {
                state_ = State::frame;
                start_ = position_;
                size_ = 0;
                left_ = 0;
                zero_next_ = true;
            }
            break;
        case State::frame:
            if (byte == zero)
                end_damage(position_, State::after_zero);
            else
                decode(byte);
            break;
        case State::skip:
            if (byte == zero)
                end_damage(position_, State::after_zero);
            else if (position_ + 1 - start_ >= max_encoded_frame_size)
                end_damage(position_ + 1, State::text);
            break;
    }
}

void Line::decode(std::byte byte) {
    if (left_ != 0) {
        --left_;
        put(byte);
        return;
    }
    const bool zero_before = zero_next_;
    left_ = static_cast<std::uint8_t>(std::to_integer<unsigned>(byte) - 1);
    zero_next_ = byte != std::byte{0xff};
    if (zero_before)
        put(zero);
}

void Line::put(std::byte byte) {
    bytes_[size_++] = byte;
    if (size_ < frame_header_size)
        return;
    const std::size_t whole = frame_size(std::span(bytes_).first<frame_header_size>());
    if (whole > max_frame_size) {
        state_ = State::skip;
        return;
    }
    if (size_ < whole)
        return;
    // The length tells the end, so a lost 0x00 behind the frame costs nothing.
    Frame frame;
    if (left_ == 0 && parse_frame(std::span(bytes_).first(size_), frame)) {
        state_ = State::text;
        handler_.frame(frame);
    } else {
        state_ = State::skip;
    }
}

void Line::end_damage(std::uint64_t end, State next) {
    handler_.damaged(start_, static_cast<std::size_t>(end - start_));
    state_ = next;
}

}  // namespace kcdata::serial
