#include "kernel/trace.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/absolute_time.hpp"
#include "kernel/console.hpp"
#include "kernel/panic.hpp"
#include "platform/arm64/image.hpp"

namespace kernel {
namespace {

using stackshot::TraceEntry;
using stackshot::TraceRing;

constinit std::array<TraceRing, max_cpus> trace_rings{};

/// The entry's file, if it is a constant of the image: a panic prints traces that may have been
/// written over.
const char* checked_file(const TraceEntry& entry) {
    const std::uint64_t offset =
        reinterpret_cast<std::uint64_t>(entry.file) - platform::image::link_address();
    return offset < platform::image::constants_size() ? entry.file : "?";
}

}  // namespace

TraceRing& trace_ring(CpuIndex cpu) {
    CHECK(cpu < max_cpus);
    return trace_rings[cpu];
}

void write_trace(TextSink& sink) {
    for (CpuIndex cpu = 0; cpu < max_cpus; cpu++) {
        std::array<TraceEntry, TraceRing::capacity> entries;
        const std::size_t count = trace_rings[cpu].read(entries);
        for (const TraceEntry& entry : std::span(entries).first(count)) {
            char line[160];
            const std::size_t length = format_to(
                line, sizeof(line), "trace: cpu %-2u %12lu us  %-18s 0x%lx  %s:%u\n", cpu,
                absolute_time_to_microseconds(entry.time), stackshot::trace_event_name(entry.event),
                entry.word, checked_file(entry), entry.line);
            sink.put(line, std::min(length, sizeof(line) - 1));
        }
    }
}

void print_trace() {
    console::Output sink;
    write_trace(sink);
}

}  // namespace kernel
