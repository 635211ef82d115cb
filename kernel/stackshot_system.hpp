#pragma once

#include <cstdint>

#include "kernel/machine.hpp"
#include "platform/arm64/devicetree/board.hpp"
#include "stackshot/system.hpp"

namespace kernel {

class StoppedForGood;

/// This kernel as the collector sees it.
stackshot::System& stackshot_system();

/// Takes in the facts that stay as they are, boot arguments included: `max_tracebuf_size` (bytes)
/// and `stackshot_estimate_adj` (percent) as in XNU, `stackshot.mode=parallel|single`, and `epoch`,
/// the seconds since 1970 at boot. Once, on the boot CPU, with memory and boot arguments ready.
void initialize_stackshot_system(const platform::Board& board);

/// From now on the world stands still for a panic: threads that run have run until now.
void stackshot_system_stopped(StoppedForGood& stopped);

/// The thread on `cpu`; none if the CPU takes no part in scheduling. Inside a stop.
stackshot::ThreadRef thread_on_cpu(CpuIndex cpu);

}  // namespace kernel
