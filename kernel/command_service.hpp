#pragma once

namespace kernel {

/// Starts the thread "command" of kernel_task, which serves the serial line: requests of a host
/// (kcdata/serial/target.hpp), and what is typed at the console. Nothing if there is no PL011.
/// Once, thread context.
void start_command_service();

}  // namespace kernel
