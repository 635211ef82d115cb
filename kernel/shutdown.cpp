#include "kernel/shutdown.hpp"

#include "kernel/console.hpp"
#include "kernel/machine.hpp"
#include "platform/arm64/psci/psci.hpp"

namespace kernel {

void shut_down() {
    console::print("power off\n");
    console::flush();
    const platform::psci::Status status = platform::psci::system_off();
    console::print("PSCI SYSTEM_OFF: %s; halting this CPU\n", platform::psci::name(status));
    machine::halt();
}

void reboot() {
    console::print("reboot\n");
    console::flush();
    const platform::psci::Status status = platform::psci::system_reset();
    console::print("PSCI SYSTEM_RESET: %s\n", platform::psci::name(status));
}

}  // namespace kernel
