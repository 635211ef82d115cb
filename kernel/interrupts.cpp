#include "kernel/machine_arm64.hpp"
#include "kernel/panic.hpp"
#include "kernel/pl011_driver.hpp"
#include "kernel/quiesce.hpp"
#include "kernel/scheduler.hpp"
#include "platform/arm64/exception/handlers.hpp"

namespace platform {

/// On the stack of the thread that was interrupted. It may switch to another thread at its end, and
/// return when that one is switched back to.
void handle_irq(ExceptionFrame& frame) {
    using namespace kernel;
    const stackshot::Registers interrupted{
        .pc = frame.elr,
        .lr = frame.lr(),
        .fp = frame.fp(),
        .sp = frame.sp,
    };
    quiesce().saw_interrupt(interrupted);

    InterruptController& gic = interrupt_controller();
    const AcknowledgedInterrupt interrupt = gic.acknowledge();
    if (interrupt.intid.is_special())
        return;
    if (interrupt.intid == machine::stop_sgi)
        quiesce().answer(interrupted);
    else if (interrupt.intid == machine::timer_interrupt())
        scheduler::timer_interrupt();
    else if (interrupt.intid == pl011_driver::interrupt())
        pl011_driver::handle_interrupt();
    else if (interrupt.intid != machine::reschedule_sgi)
        panic("interrupt %u is nobody's", interrupt.intid.value());
    // Before a switch: the next thread is not to run with this interrupt's priority.
    gic.end(interrupt);
    scheduler::preempt();
}

}  // namespace platform
