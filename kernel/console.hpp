#pragma once

#include <cstdarg>
#include <cstddef>
#include <span>

/// Text and frames on the board's PL011. One call is one unit: nothing another thread prints or
/// sends comes in between, and text never splits a frame.
///
/// Any context but a stop. With interrupts on the calling thread may be preempted while it prints,
/// and sleeps while another one does. With interrupts off it spins for the line, at most a second:
/// then it prints all the same, since a torn line tells more than silence.
namespace kernel::console {

/// Prints text as printf does (see format_text.hpp).
[[gnu::format(printf, 1, 2)]] void print(const char* format, ...);
void print_v(const char* format, std::va_list arguments);

/// Sends bytes as they are.
void write(std::span<const std::byte> bytes);

/// Returns when the last bit is on the line.
void flush();

/// From now on this CPU prints without waiting for anyone. Only for panic.
void seize();

}  // namespace kernel::console
