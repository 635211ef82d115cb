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
///     stackshot.flags=N        STACKSHOT_* of the request; with STACKSHOT_COLLECT_DELTA_SNAPSHOT
///                              a full capture, then deltas, each against the one before
///     stackshot.compress       adds STACKSHOT_DO_COMPRESS to them
///     stackshot.pid=N          only this task
///     stackshot.then=run|off   what is done after the last one (run)
StackshotPlan read_stackshot_plan(BootArguments& arguments);

/// Starts the thread that takes captures as the boot arguments say and sends them over the
/// console's line. Each capture is followed by a line of what it held and where its time went.
/// Once, thread context.
void start_stackshot_service();

/// The captures of a plan, one after the other, on behalf of kernel_task. Thread context.
class StackshotSeries {
  public:
    /// `plan` outlives this.
    explicit StackshotSeries(const StackshotPlan& plan) : plan_(plan) {}

    /// Takes the next capture and sends it. Errors are those of stack_snapshot_with_config() and
    /// the sender.
    stackshot::bsd_errno next();

  private:
    const StackshotPlan& plan_;
    std::uint64_t number_ = 0;
    bool full_taken_ = false;              ///< deltas can follow
    std::uint64_t last_capture_time_ = 0;  ///< absolute time; 0 if it did not tell
};

}  // namespace kernel
