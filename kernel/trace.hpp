#pragma once

#include "kernel/machine.hpp"
#include "stackshot/trace_ring.hpp"

namespace kernel {

/// What stackshots have left behind on `cpu`. Any context; tools/gdb/kernel.py finds it by name.
stackshot::TraceRing& trace_ring(CpuIndex cpu);

/// Prints the traces of all CPUs, one after the other, a line for each entry, oldest first. Where
/// the console may be used.
void print_trace();

}  // namespace kernel
