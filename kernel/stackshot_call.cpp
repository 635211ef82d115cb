#include "kernel/stackshot_call.hpp"

#include <array>
#include <string_view>

#include "kcdata/stackshot_flags.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/console.hpp"
#include "kernel/heap.hpp"
#include "kernel/panic.hpp"
#include "kernel/stackshot_system.hpp"
#include "kernel/task.hpp"
#include "kernel/vm_map.hpp"

namespace kernel {
namespace {

constinit stackshot::Subsystem* the_subsystem = nullptr;

}  // namespace

stackshot::Subsystem& stackshot_subsystem() {
    return *the_subsystem;
}

void initialize_stackshot_subsystem(BootArguments& arguments) {
    constexpr std::array<std::string_view, 2> policies = {"report", "refuse"};
    stackshot::AdmissionPolicy policy;
    policy.entitlement = arguments.choice("stackshot.entitlement", policies, 0) == 0
                             ? stackshot::EntitlementPolicy::report
                             : stackshot::EntitlementPolicy::refuse;
    policy.development = arguments.flag("stackshot.development", true);
    policy.feature_override = arguments.flag("stackshot.override", false);
    the_subsystem = heap::create<stackshot::Subsystem>(stackshot_system(), policy);
    auto* const map = heap::create<VmMap>();
    if (the_subsystem == nullptr || map == nullptr)
        panic("no memory for the stackshot subsystem");
    Task& task = kernel_task();
    task.map = map;
    task.credential = {0,
                       stackshot::entitlement_stackshot | stackshot::entitlement_stackshot_stats};
}

void take_boot_profile(BootArguments& arguments) {
    if (!arguments.flag("stackshot.boot_profile", false))
        return;
    stackshot::Request request;
    request.flags |= kcdata::STACKSHOT_SAVE_LOADINFO | kcdata::STACKSHOT_GET_GLOBAL_MEM_STATS;
    if (const auto error = the_subsystem->keep_boot_profile(request); error != kcdata::KERN_SUCCESS)
        console::print("stackshot: no boot profile: %s\n", kcdata::kern_return_name(error));
}

stackshot::bsd_errno stack_snapshot_with_config(Task& task, std::uint32_t version,
                                                std::uint64_t config_address,
                                                std::size_t config_size) {
    CHECK(task.map != nullptr);
    if (stackshot::reportable(task.credential))
        console::print("stackshot: %s (pid %d) asks for a stackshot without the entitlement\n",
                       task.name, task.pid);
    return stackshot::stack_snapshot_with_config(
        stackshot_subsystem(), {task.credential, *task.map}, version, config_address, config_size);
}

}  // namespace kernel
