#pragma once

#include "kernel/format_text.hpp"

/// Texts that tell how the kernel is doing, a line at a time. Thread context.
namespace kernel {

/// All tasks that are not terminated, a line each, in the order of their creation: pid, threads,
/// how many of them run or could, time on CPUs in milliseconds, name. The first line names the
/// columns. Tasks come and go meanwhile.
void write_tasks(TextSink& sink);

/// What the kernel counts: a name, a blank and a number on each line; times in microseconds.
void write_statistics(TextSink& sink);

}  // namespace kernel
