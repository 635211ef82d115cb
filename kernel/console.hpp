#pragma once

#include <cstdarg>
#include <cstddef>
#include <span>

namespace platform {
class Pl011;
}

namespace kernel::console {

/// The serial port everything goes to. Until this is called output is dropped.
void initialize(platform::Pl011& port);

/// Prints text as printf does (see format_text.hpp). One call is one unit: nothing another CPU
/// prints or sends comes in between. Any context but a stop; with interrupts on the calling thread
/// may be preempted while it prints, and may wait for another thread that prints.
[[gnu::format(printf, 1, 2)]] void print(const char* format, ...);
void print_v(const char* format, std::va_list arguments);

/// Sends bytes as they are, as one unit. Same contexts.
void write(std::span<const std::byte> bytes);

/// From now on this CPU prints without waiting for anyone. Only for panic.
void seize();

}  // namespace kernel::console
