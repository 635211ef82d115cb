#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/serial/data_frame.hpp"

namespace kcdata::serial {

/// Sends one finished capture frame by frame; console text may go out between two calls of
/// send_next(). Allocates nothing. The capture and the sink must outlive the sender, and the
/// capture must not change.
class Sender {
  public:
    /// `payload` bytes go into each data frame: 1 to max_frame_payload. Reads the whole capture
    /// once, for its CRC.
    Sender(std::span<const std::byte> capture, ByteSink& sink,
           std::size_t payload = max_frame_payload);

    /// The name of the capture on the line.
    std::uint32_t capture() const { return id_; }
    /// Whether the end frame was sent.
    bool done() const { return done_; }
    /// Data frames the capture is cut into.
    std::uint32_t frame_count() const;

    /// Sends the next data frame, or the end frame behind the last one. After an error the same
    /// frame is next. KERN_INVALID_ARGUMENT: the capture is empty or does not fit 32 bits, or
    /// everything was sent.
    kern_return send_next();
    /// Sends all that is left.
    kern_return send_all();

  private:
    std::span<const std::byte> capture_;
    ByteSink& sink_;
    std::size_t payload_;
    std::uint32_t id_;
    std::uint32_t next_ = 0;
    bool done_ = false;
};

}  // namespace kcdata::serial
