#pragma once

namespace kernel {

/// Reports a bug of our own and stops the machine: the message, where every CPU is, and a backtrace
/// go to the console, then what set_panic_action() says is done. An exception nobody expected ends
/// here too, with its registers. Any context. A panic inside a panic is short.
[[noreturn, gnu::cold, gnu::noinline, gnu::format(printf, 1, 2)]] void panic(const char* format,
                                                                             ...);

/// What a panic does at its end: turn the machine off, halt all CPUs, or reset it.
enum class PanicAction : unsigned char { off, halt, reset };
void set_panic_action(PanicAction action);

}  // namespace kernel

/// Panics unless `condition` holds. For our own bugs, never for input.
#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) [[unlikely]]                                                  \
            ::kernel::panic("%s:%d: CHECK failed: %s", __FILE__, __LINE__, #condition); \
    } while (false)
