#pragma once

namespace kernel {

class BootArguments;

/// Reports a bug of our own and stops the machine: the message, where every CPU is, a backtrace and
/// a capture (see panic_capture.hpp) go to the console, then what configure_panic() was told is
/// done. An exception nobody expected ends here too, with its registers. Any context. A panic
/// inside a panic is short, and captures nothing.
[[noreturn, gnu::cold, gnu::noinline, gnu::format(printf, 1, 2)]] void panic(const char* format,
                                                                             ...);

/// Takes the boot argument `panic=off|halt|reset`, which says what a panic does at its end: turn
/// the machine off (the default), halt all CPUs, or reset it.
void configure_panic(BootArguments& arguments);

}  // namespace kernel

/// Panics unless `condition` holds. For our own bugs, never for input.
#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) [[unlikely]]                                                  \
            ::kernel::panic("%s:%d: CHECK failed: %s", __FILE__, __LINE__, #condition); \
    } while (false)
