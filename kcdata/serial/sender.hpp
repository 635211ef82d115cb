#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/serial/data_frame.hpp"
#include "kcdata/serial/parity.hpp"

namespace kcdata::serial {

/// How a capture is sent where nobody asks again for what the line loses.
struct SenderOptions {
    std::size_t payload = max_frame_payload;  ///< bytes in each data frame, 1 to max_frame_payload
    Encoding encoding = Encoding::binary;
    /// How often everything is sent: 1 or more.
    std::uint32_t repeats = 1;
    /// Parity frames for each 100 data frames, and a few more for a short capture; 0: none at all.
    /// With them `payload` is at most max_parity_payload. See parity.hpp.
    std::uint32_t parity_percent = 0;
};

/// For a line that damages one byte in a thousand: it takes about 1.7 times the capture.
inline constexpr SenderOptions lossy_line{.payload = 128, .parity_percent = 30};

/// Sends one finished capture frame by frame, by itself: one-way. Console text may go out between
/// two calls of send_next(). Allocates nothing. The capture and the sink must outlive the sender,
/// and the capture must not change.
class Sender {
  public:
    /// Reads the whole capture once, for its CRC.
    Sender(std::span<const std::byte> capture, ByteSink& sink, const SenderOptions& options = {});

    /// The name of the capture on the line.
    std::uint32_t capture() const { return id_; }
    /// Whether the last end frame was sent.
    bool done() const { return round_ == options_.repeats; }
    /// Data frames the capture is cut into, and parity frames; of one round.
    std::uint32_t frame_count() const { return frames_; }
    std::uint32_t parity_count() const { return layout_.groups * parities_; }

    /// Sends the next frame: the data frames, then the parity frames, then an end frame. After an
    /// error the same frame is next. KERN_INVALID_ARGUMENT: the capture is empty or does not fit 32
    /// bits, or the options are out of range, or everything was sent.
    kern_return send_next();
    /// Sends all that is left.
    kern_return send_all();

  private:
    kern_return send_data();
    kern_return send_parity();

    std::span<const std::byte> capture_;
    ByteSink& sink_;
    SenderOptions options_;
    bool valid_;
    std::uint32_t id_ = 0;
    std::uint32_t frames_ = 0;
    ParityLayout layout_{};
    std::uint32_t parities_ = 0;  ///< parity frames of each group
    std::uint32_t round_ = 0;
    std::uint32_t next_ = 0;  ///< frame of the round
    std::array<std::byte, max_parity_payload> sum_{};
};

}  // namespace kcdata::serial
