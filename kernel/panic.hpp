#pragma once

namespace platform {
struct ExceptionFrame;
}

namespace kernel {

/// Reports a bug of our own and stops the machine: message, registers and backtrace on the console,
/// then the boot argument `panic=off|halt|reset`. Any context. A panic inside a panic is short.
[[noreturn, gnu::cold, gnu::noinline, gnu::format(printf, 1, 2)]] void panic(const char* format,
                                                                             ...);

/// The same for an exception nothing expected. Interrupts off.
[[noreturn, gnu::cold]] void panic_on_exception(const platform::ExceptionFrame& frame);

/// What a panic does at its end.
enum class PanicAction : unsigned char { off, halt, reset };
void set_panic_action(PanicAction action);

}  // namespace kernel

/// Panics unless `condition` holds. For our own bugs, never for input.
#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) [[unlikely]]                                                  \
            ::kernel::panic("%s:%d: CHECK failed: %s", __FILE__, __LINE__, #condition); \
    } while (false)
