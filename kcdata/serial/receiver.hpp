#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <span>
#include <utility>
#include <vector>

#include "kcdata/serial/gathering.hpp"
#include "kcdata/serial/line.hpp"
#include "kcdata/serial/repair.hpp"

namespace kcdata::serial {

/// A capture with parts missing.
struct PartialCapture {
    Progress progress{};
    std::vector<Range> missing{};
    /// The bytes before the first gap. Not verified as a whole.
    std::vector<std::byte> bytes{};
};

/// Why Receiver gave a capture up.
enum class AbandonReason : std::uint8_t {
    too_many,   ///< more than Limits::max_open captures at once; this was the oldest
    too_long,   ///< longer than Limits::max_total
    wrong_crc,  ///< all bytes are there, but they are not the ones the sender had
};

/// What Receiver tells, in the order of the line.
class ReceiverHandler {
  public:
    /// Console text or noise; see LineHandler::text. To be cleaned before it goes to a terminal.
    virtual void text(std::span<const std::byte> bytes) = 0;
    /// All bytes of a capture arrived and its CRC is right. Told once for each capture, unless it
    /// is sent again after Receiver::remembered others.
    virtual void complete(std::uint32_t capture, std::vector<std::byte> bytes) = 0;
    /// A valid new frame of a capture arrived.
    virtual void progress(const Progress&) {}
    /// `size` bytes of the line from `position` on were a frame once.
    virtual void damaged(std::uint64_t position, std::size_t size) = 0;
    /// A capture was given up. Unless it is too long, it begins anew when it is sent again.
    virtual void abandoned(const PartialCapture& capture, AbandonReason reason) = 0;

  protected:
    ~ReceiverHandler() = default;
};

/// Gathers captures from a line that also carries console text. Frames may come in any order, more
/// than once, in any size; where there are parity frames, they stand in for lost ones. Host only:
/// it allocates, in proportion to the bytes received and never to a declared length, nor to the
/// number of captures that were on the line.
class Receiver final : private LineHandler {
  public:
    /// So many captures that are over are remembered.
    static constexpr std::size_t remembered = 64;

    struct Limits {
        std::uint32_t max_total = 256u << 20;  ///< bytes of one capture
        std::size_t max_open = 4;              ///< captures being received at once
    };
    explicit Receiver(ReceiverHandler& handler) : Receiver(handler, Limits{}) {}
    Receiver(ReceiverHandler& handler, Limits limits);

    void feed(std::span<const std::byte> bytes);
    /// The input ended. incomplete() tells what is missing then.
    void finish();

    /// The captures that began and are not complete, oldest first, with what is missing.
    std::vector<PartialCapture> incomplete() const;
    /// Whether any capture is being received.
    bool receiving() const { return !open_.empty(); }

  private:
    /// Captures are told apart by name and length.
    using Key = std::pair<std::uint32_t, std::uint32_t>;
    struct Open {
        Gathering gathering;
        Repair repair{};
        bool end_seen = false;
    };

    void text(std::span<const std::byte> bytes) override;
    void frame(const Frame& frame) override;
    void damaged(std::uint64_t position, std::size_t size) override;

    /// The capture `key` names; begins it if it is new.
    std::list<Open>::iterator open(const Key& key);
    static Progress progress_of(const Open& capture);
    /// Says nothing more of `key`, until so many others have been ignored since that it is
    /// forgotten.
    void ignore(const Key& key);
    static PartialCapture partial(const Open& capture);

    ReceiverHandler& handler_;
    Limits limits_;
    Line::Room<max_frame_body> line_room_{};
    Line line_;
    std::list<Open> open_;
    /// Complete or too long: further frames of these say nothing new. The latest ones.
    std::deque<Key> ignored_;
};

}  // namespace kcdata::serial
