#include "stackshot/trace_ring.hpp"

namespace stackshot {

const char* trace_event_name(TraceEvent event) {
    switch (event) {
        case TraceEvent::attempt:
            return "attempt";
        case TraceEvent::preflight:
            return "preflight";
        case TraceEvent::set_up:
            return "set_up";
        case TraceEvent::absent:
            return "absent";
        case TraceEvent::populated:
            return "populated";
        case TraceEvent::recorded:
            return "recorded";
        case TraceEvent::barrier:
            return "barrier";
        case TraceEvent::resumed:
            return "resumed";
        case TraceEvent::interrupts_overdue:
            return "interrupts_overdue";
        case TraceEvent::assembled:
            return "assembled";
        case TraceEvent::error:
            return "error";
    }
    return "unknown";
}

void TraceRing::add(const TraceEntry& entry) {
    const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
    Slot& slot = slots_[number % capacity];
    // A slot is one writer's at a time. If the one before was interrupted in it, or this one in
    // front of it, for a whole round, nobody can wait for the other: the entry is lost.
    std::uint64_t last = slot.sequence.load(std::memory_order_relaxed);
    do {
        if (last % 2 != 0 || last > 2 * number)
            return;
        // Acquire: what was written there comes before what is written now.
    } while (!slot.sequence.compare_exchange_weak(last, 2 * number + 1, std::memory_order_acquire,
                                                  std::memory_order_relaxed));
    slot.time.store(entry.time, std::memory_order_release);
    slot.event_and_line.store(
        std::uint64_t{static_cast<std::uint8_t>(entry.event)} << 32 | entry.line,
        std::memory_order_release);
    slot.file.store(entry.file, std::memory_order_release);
    slot.word.store(entry.word, std::memory_order_release);
    slot.sequence.store(2 * number + 2, std::memory_order_release);
}

std::size_t TraceRing::read(std::span<TraceEntry, capacity> entries) const {
    const std::uint64_t end = next_.load(std::memory_order_acquire);
    std::size_t count = 0;
    for (std::uint64_t number = end > capacity ? end - capacity : 0; number < end; ++number) {
        const Slot& slot = slots_[number % capacity];
        const std::uint64_t complete = 2 * number + 2;
        if (slot.sequence.load(std::memory_order_acquire) != complete)
            continue;
        TraceEntry& entry = entries[count];
        entry.time = slot.time.load(std::memory_order_acquire);
        const std::uint64_t event_and_line = slot.event_and_line.load(std::memory_order_acquire);
        entry.event = static_cast<TraceEvent>(event_and_line >> 32);
        entry.line = static_cast<std::uint32_t>(event_and_line);
        entry.file = slot.file.load(std::memory_order_acquire);
        entry.word = slot.word.load(std::memory_order_acquire);
        if (slot.sequence.load(std::memory_order_relaxed) == complete)
            ++count;
    }
    return count;
}

}  // namespace stackshot
