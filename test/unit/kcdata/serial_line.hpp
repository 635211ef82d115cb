#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kcdata/serial/crc32c.hpp"
#include "kcdata/serial/receiver.hpp"
#include "kcdata/serial/sender.hpp"

/// A line in memory: what the sender writes, the receiver is fed.
class Wire final : public kcdata::serial::ByteSink {
  public:
    kcdata::kern_return write(std::span<const std::byte> bytes) override {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        return kcdata::KERN_SUCCESS;
    }
    Wire& text(const std::string& characters) {
        (void)write(std::as_bytes(std::span(characters)));
        return *this;
    }
    Wire& raw(const std::vector<std::byte>& bytes) {
        (void)write(bytes);
        return *this;
    }

    std::vector<std::byte> bytes_;
};

inline std::vector<std::byte> random_bytes(std::mt19937& random, std::size_t size) {
    std::vector<std::byte> result(size);
    for (std::byte& byte : result)
        byte = static_cast<std::byte>(random());
    return result;
}

/// What a capture looks like: mostly zeros and small numbers.
inline std::vector<std::byte> sparse_bytes(std::mt19937& random, std::size_t size) {
    std::vector<std::byte> result(size);
    for (std::byte& byte : result)
        byte = random() % 3 == 0 ? static_cast<std::byte>(random()) : std::byte{0};
    return result;
}

/// The frames a sender makes of a capture, one by one, the end frame last.
inline std::vector<std::vector<std::byte>> frames_of(std::span<const std::byte> capture,
                                                     std::size_t payload) {
    std::vector<std::vector<std::byte>> frames;
    Wire wire;
    kcdata::serial::Sender sender(capture, wire, {.payload = payload});
    while (!sender.done()) {
        wire.bytes_.clear();
        if (sender.send_next() != kcdata::KERN_SUCCESS)
            break;
        frames.push_back(wire.bytes_);
    }
    return frames;
}

/// A capture's data frames as lines of text, without the end frame.
inline std::vector<std::vector<std::byte>> text_frames_of(std::span<const std::byte> capture,
                                                          std::size_t payload) {
    using namespace kcdata::serial;
    std::vector<std::vector<std::byte>> frames;
    for (std::size_t at = 0; at < capture.size(); at += payload) {
        Wire wire;
        if (write_data_frame(
                wire, Encoding::text,
                {.kind = FrameKind::data,
                 .object = crc32c(capture),
                 .offset = static_cast<std::uint32_t>(at),
                 .total = static_cast<std::uint32_t>(capture.size()),
                 .payload = capture.subspan(at, std::min(payload, capture.size() - at))}) ==
            kcdata::KERN_SUCCESS)
            frames.push_back(wire.bytes_);
    }
    return frames;
}

/// Everything a receiver told.
class Recorder final : public kcdata::serial::ReceiverHandler {
  public:
    struct Complete {
        std::uint32_t capture;
        std::vector<std::byte> bytes;
        bool operator==(const Complete&) const = default;
    };
    struct Damage {
        std::uint64_t position;
        std::size_t size;
        bool operator==(const Damage&) const = default;
    };
    struct Abandoned {
        kcdata::serial::PartialCapture capture;
        kcdata::serial::AbandonReason reason;
    };

    void text(std::span<const std::byte> bytes) override {
        for (std::byte byte : bytes)
            text_.push_back(static_cast<char>(byte));
    }
    void complete(std::uint32_t capture, std::vector<std::byte> bytes) override {
        events_ += "complete after " + std::to_string(text_.size()) + "\n";
        complete_.push_back({capture, std::move(bytes)});
    }
    void progress(const kcdata::serial::Progress& progress) override {
        events_ += "progress " + std::to_string(progress.received) + "/" +
                   std::to_string(progress.total) + " after " + std::to_string(text_.size()) + "\n";
    }
    void damaged(std::uint64_t position, std::size_t size) override {
        events_ += "damage after " + std::to_string(text_.size()) + "\n";
        damaged_.push_back({position, size});
    }
    void abandoned(const kcdata::serial::PartialCapture& capture,
                   kcdata::serial::AbandonReason reason) override {
        abandoned_.push_back({capture, reason});
    }

    std::string text_;
    /// The order of everything, and where in the text it came.
    std::string events_;
    std::vector<Complete> complete_;
    std::vector<Damage> damaged_;
    std::vector<Abandoned> abandoned_;
};
