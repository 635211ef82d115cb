#pragma once

namespace kernel {

/// Sends what is still on its way to the console and turns the machine off; halts where the
/// firmware cannot. Thread context.
[[noreturn]] void shut_down();

}  // namespace kernel
