#pragma once

#include <cstdint>

#include "kcdata/stackshot_flags.hpp"
#include "stackshot/bsd.hpp"

namespace kernel {

class BootArguments;

/// What captures the kernel takes by itself.
struct StackshotPlan {
    std::uint64_t count = 0;
    std::uint64_t delay_milliseconds = 0;     ///< before the first one
    std::uint64_t interval_milliseconds = 0;  ///< before each further one
    kcdata::stackshot_config config{};        ///< the request
    bool off_then = false;                    ///< whether the machine is turned off afterwards
};

/// The plan of the boot arguments:
///
///     stackshot.count=N        captures to take (1); 0: none
///     stackshot.delay_ms=N     how long the workload runs before the first one (1000)
///     stackshot.interval_ms=N  and before each further one (1000)
///     stackshot.flags=N        STACKSHOT_* of the request
///     stackshot.compress       adds STACKSHOT_DO_COMPRESS to them
///     stackshot.pid=N          only this task
///     stackshot.then=run|off   what is done after the last one (run)
StackshotPlan read_stackshot_plan(BootArguments& arguments);

/// Starts the thread that takes captures as the boot arguments say and sends them over the
/// console's line. Each capture is followed by a line of what it held and where its time went.
/// Once, thread context.
void start_stackshot_service();

/// Takes one capture of the plan, on behalf of kernel_task, and sends it; the line calls it the
/// `number`-th. Errors are those of stack_snapshot_with_config() and the sender. Thread context.
stackshot::bsd_errno capture_and_send(const StackshotPlan& plan, std::uint64_t number);

}  // namespace kernel
