#include "kernel/shutdown.hpp"

#include "kernel/console.hpp"
#include "kernel/machine.hpp"
#include "platform/arm64/psci/psci.hpp"

namespace kernel {

void shut_down() {
    console::print("power off\n");
    console::flush();
    platform::psci::system_off();
    console::print("PSCI SYSTEM_OFF returned; halting this CPU\n");
    machine::halt();
}

}  // namespace kernel
