#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"
#include "stackshot/atomic.hpp"

namespace stackshot {

/// What a trace entry tells of; in brackets its word.
enum class TraceEvent : std::uint8_t {
    attempt,             ///< an attempt begins [bytes to collect into]
    preflight,           ///< this CPU is about to acknowledge the stop
    set_up,              ///< the initiator lets the collection run [CPUs that take part]
    absent,              ///< CPUs did not answer the stop [which]
    populated,           ///< the main CPU has found all tasks
    recorded,            ///< this CPU has no more to record [threads it recorded]
    barrier,             ///< every CPU is done [absolute time the initiator waited]
    resumed,             ///< the world runs again [absolute time interrupts were off]
    interrupts_overdue,  ///< the same, and they were off for longer than the limit
    assembled,           ///< the buffer is finished [bytes]
    error,               ///< something failed [kern_return]
};
/// The enumerator's name.
const char* trace_event_name(TraceEvent event);

/// One entry: what happened when, and the place in the source that says so.
struct TraceEntry {
    std::uint64_t time = 0;  ///< absolute time
    TraceEvent event = TraceEvent::error;
    std::uint32_t line = 0;
    const char* file = "";  ///< from the root of the source tree
    std::uint64_t word = 0;
};

/// The last entries of one CPU, for whoever looks into a machine that misbehaves. Written without a
/// lock, in any context, an interrupt of another writer included; read at any time. An entry is
/// lost if its place is still being written by one that was interrupted a whole round before.
class TraceRing {
  public:
    static constexpr std::size_t capacity = 32;

    void add(const TraceEntry& entry);
    /// Copies the entries that are complete, oldest first; returns how many there are.
    std::size_t read(std::span<TraceEntry, capacity> entries) const;

  private:
    // The order is on the atomics, as in a sequence lock: a reader that sees a new value (acquire)
    // also sees the sequence stored before it (release).
    struct Slot {
        /// Twice the entry's number plus 2 when it is complete, plus 1 while it is written.
        Atomic<std::uint64_t> sequence{0};
        Atomic<std::uint64_t> time{0};
        Atomic<std::uint64_t> event_and_line{0};
        Atomic<const char*> file{nullptr};
        Atomic<std::uint64_t> word{0};
    };

    Atomic<std::uint64_t> next_{0};
    std::array<Slot, capacity> slots_{};
};

}  // namespace stackshot
