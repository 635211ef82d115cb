#pragma once

#include <cstdint>

#include "kcdata/result.hpp"

namespace kernel {

/// Starts the thread that takes captures by itself and sends them over the console's line, as the
/// boot arguments say:
///
///     stackshot.count=N        captures to take (1); 0: none
///     stackshot.delay_ms=N     how long the workload runs before the first one (1000)
///     stackshot.interval_ms=N  and before each further one (1000)
///     stackshot.flags=N        STACKSHOT_* of the request
///     stackshot.pid=N          only this task
///     stackshot.then=run|off   what is done after the last one (run)
///
/// Each capture is followed by a line of what it held and where its time went. Thread context.
void start_stackshot_service();

/// Takes and sends one capture, as the boot arguments say; the line calls it the `number`-th.
/// Errors are those of stackshot::validate_request(), take_stackshot() and the sender. Thread
/// context.
kcdata::kern_return capture_and_send(std::uint64_t number);

}  // namespace kernel
