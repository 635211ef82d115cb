#pragma once

namespace kernel {

/// Sends what is still on its way to the console and turns the machine off; halts where the
/// firmware cannot. Thread context.
[[noreturn]] void shut_down();
/// The same, but resets the machine; says why and returns where the firmware cannot.
void reboot();

}  // namespace kernel
