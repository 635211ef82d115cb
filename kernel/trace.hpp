#pragma once

#include "kernel/format_text.hpp"
#include "kernel/machine.hpp"
#include "stackshot/trace_ring.hpp"

namespace kernel {

/// What stackshots have left behind on `cpu`. Any context; tools/gdb/kernel.py finds it by name.
stackshot::TraceRing& trace_ring(CpuIndex cpu);

/// Writes the traces of all CPUs, one after the other, a line for each entry, oldest first, each
/// line at once. Where the sink may be used.
void write_trace(TextSink& sink);
/// The same to the console. Where that may be used.
void print_trace();

}  // namespace kernel
