#pragma once

#include <cstddef>
#include <cstdint>

#include "stackshot/bsd.hpp"
#include "stackshot/subsystem.hpp"

namespace kernel {

class BootArguments;
struct Task;

/// The kernel's stackshot subsystem.
stackshot::Subsystem& stackshot_subsystem();

/// Sets the subsystem up, and gives kernel_task, who is superuser and entitled, a map. Who may have
/// a stackshot the boot arguments say:
///
///     stackshot.entitlement=report|refuse  what becomes of a task that is not entitled (report)
///     stackshot.development=0|1            whether this is a development kernel (1)
///     stackshot.override=0|1               whether stackshots are refused altogether (0)
///
/// Once, in the first thread.
void initialize_stackshot_subsystem(BootArguments& arguments);

/// At the end of boot: takes the boot profile, which STACKSHOT_GET_BOOT_PROFILE gives out, if the
/// boot argument `stackshot.boot_profile` asks for one. Says on the console if it fails.
void take_boot_profile(BootArguments& arguments);

/// The system call, for a thread of `task`, which has a map: `config_address` is an address in it.
/// A task that is not entitled is reported on the console. See
/// stackshot::stack_snapshot_with_config().
stackshot::bsd_errno stack_snapshot_with_config(Task& task, std::uint32_t version,
                                                std::uint64_t config_address,
                                                std::size_t config_size);

}  // namespace kernel
