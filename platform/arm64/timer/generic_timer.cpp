#include "platform/arm64/timer/generic_timer.hpp"

#include <bit>

#include "platform/arm64/cpu/barrier.hpp"
#include "platform/arm64/cpu/registers.hpp"
#include "platform/arm64/cpu/sysreg.hpp"

namespace platform::timer {

void set_deadline(std::uint64_t deadline) {
    WRITE_SYSREG(cntv_cval_el0, deadline);
    WRITE_SYSREG(cntv_ctl_el0, CNTV_CTL_EL0::ENABLE);
    // The timer's output follows before anything the caller does next, the end of its interrupt
    // above all: or the same expiry would be signalled again.
    cpu::isb();
}

void stop() {
    WRITE_SYSREG(cntv_ctl_el0, 0);
    cpu::isb();
}

void enable_event_stream(std::uint64_t period) {
    // An event at each change of counter bit EVNTI from 0 to 1: every 2^(EVNTI + 1) ticks.
    const unsigned log2 = period < 2 ? 1 : static_cast<unsigned>(std::bit_width(period)) - 1;
    const std::uint64_t counter_bit = log2 - 1;
    WRITE_SYSREG(cntkctl_el1,
                 CNTKCTL_EL1::EVNTEN | CNTKCTL_EL1::EVNTI(counter_bit < CNTKCTL_EL1::EVNTI_max
                                                              ? counter_bit
                                                              : CNTKCTL_EL1::EVNTI_max));
    cpu::isb();
}

}  // namespace platform::timer
