#include "kcdata/serial/line.hpp"

#include <algorithm>

namespace kcdata::serial {

namespace {

constexpr std::byte zero{0};
/// Frames begin with a zero byte, which COBS turns into this code.
constexpr std::byte first_code{1};
constexpr auto prefix_begin = static_cast<std::byte>(text_frame_prefix[0]);

/// The value of each base64 character; 64: it is none.
constexpr std::array<std::uint8_t, 256> sextets = [] {
    std::array<std::uint8_t, 256> result{};
    result.fill(64);
    for (std::uint8_t index = 0; index < 26; ++index) {
        result[std::size_t{'A'} + index] = index;
        result[std::size_t{'a'} + index] = static_cast<std::uint8_t>(26 + index);
    }
    for (std::uint8_t index = 0; index < 10; ++index)
        result[std::size_t{'0'} + index] = static_cast<std::uint8_t>(52 + index);
    result['+'] = 62;
    result['/'] = 63;
    return result;
}();

constexpr std::uint8_t sextet(std::byte byte) {
    return sextets[std::to_integer<std::size_t>(byte)];
}

}  // namespace

void Line::feed(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        if (state_ == State::text) {
            const auto end = std::find_if(bytes.begin(), bytes.end(), [](std::byte byte) {
                return byte == zero || byte == prefix_begin;
            });
            const auto size = static_cast<std::size_t>(end - bytes.begin());
            if (size != 0)
                handler_.text(bytes.first(size));
            position_ += size;
            bytes = bytes.subspan(size);
            if (bytes.empty())
                return;
            begin(bytes[0] == zero ? State::after_zero : State::prefix, position_);
        } else if (!take(bytes[0])) {
            continue;
        }
        ++position_;
        bytes = bytes.subspan(1);
    }
}

void Line::finish() {
    switch (state_) {
        case State::frame:
        case State::skip:
        case State::text_frame:
        case State::text_skip:
            end_damage(position_, State::text);
            break;
        case State::prefix:
            handler_.text(std::as_bytes(std::span(text_frame_prefix, prefix_)));
            break;
        case State::text:
        case State::after_zero:
        case State::after_text_frame:
            break;
    }
    state_ = State::text;
}

void Line::begin(State state, std::uint64_t position) {
    state_ = state;
    start_ = position;
    size_ = 0;
    left_ = 0;
    zero_next_ = true;
    bit_count_ = 0;
    prefix_ = 1;
}

bool Line::take(std::byte byte) {
    switch (state_) {
        case State::text:
            return false;
        case State::prefix:
            if (byte != static_cast<std::byte>(text_frame_prefix[prefix_])) {
                handler_.text(std::as_bytes(std::span(text_frame_prefix, prefix_)));
                state_ = State::text;
                return false;
            }
            if (++prefix_ == text_frame_prefix_size)
                state_ = State::text_frame;
            return true;
        case State::after_zero:
            if (byte == first_code) {
                begin(State::frame, position_);
            } else if (byte != zero) {
                state_ = State::text;
                return false;
            }
            return true;
        case State::frame:
            if (byte == zero)
                end_damage(position_, State::after_zero);
            else
                decode(byte);
            return true;
        case State::skip:
            if (byte == zero)
                end_damage(position_, State::after_zero);
            else if (position_ + 1 - start_ >= cobs_size(bytes_.size()))
                end_damage(position_ + 1, State::text);
            return true;
        case State::text_frame:
            return decode_base64(byte);
        case State::text_skip:
            if (sextet(byte) == 64) {
                end_damage(position_, State::after_text_frame);
                return false;
            }
            if (position_ + 1 - start_ >= text_frame_prefix_size + base64_size(bytes_.size()))
                end_damage(position_ + 1, State::text);
            return true;
        case State::after_text_frame:
            if (byte == std::byte{'\r'})
                return true;
            state_ = State::text;
            return byte == std::byte{'\n'};
    }
    return true;
}

void Line::decode(std::byte byte) {
    if (left_ != 0) {
        --left_;
        put(byte, Encoding::binary);
        return;
    }
    const bool zero_before = zero_next_;
    left_ = static_cast<std::uint8_t>(std::to_integer<unsigned>(byte) - 1);
    zero_next_ = byte != std::byte{0xff};
    if (zero_before)
        put(zero, Encoding::binary);
}

bool Line::decode_base64(std::byte byte) {
    const std::uint8_t value = sextet(byte);
    if (value == 64) {
        end_damage(position_, State::after_text_frame);
        return false;
    }
    bits_ = static_cast<std::uint16_t>(bits_ << 6 | value);
    bit_count_ = static_cast<std::uint8_t>(bit_count_ + 6);
    if (bit_count_ >= 8) {
        bit_count_ = static_cast<std::uint8_t>(bit_count_ - 8);
        put(static_cast<std::byte>(bits_ >> bit_count_), Encoding::text);
    }
    return true;
}

void Line::put(std::byte byte, Encoding encoding) {
    const State bad = encoding == Encoding::text ? State::text_skip : State::skip;
    bytes_[size_++] = byte;
    if (size_ < frame_header_size)
        return;
    const std::size_t whole = told_frame_size(bytes_.first<frame_header_size>());
    if (whole > bytes_.size()) {
        state_ = bad;
        return;
    }
    if (size_ < whole)
        return;
    // The length tells the end, so a lost delimiter behind the frame costs nothing.
    Frame frame;
    if (left_ == 0 && parse_frame(bytes_.first(size_), encoding, frame)) {
        state_ = encoding == Encoding::text ? State::after_text_frame : State::text;
        handler_.frame(frame);
    } else {
        state_ = bad;
    }
}

void Line::end_damage(std::uint64_t end, State next) {
    handler_.damaged(start_, static_cast<std::size_t>(end - start_));
    state_ = next;
}

}  // namespace kcdata::serial
