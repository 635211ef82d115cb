#include "kernel/sleep.hpp"

#include <bit>

#include "kernel/absolute_time.hpp"
#include "kernel/scheduler.hpp"

namespace kernel {

void sleep_until(std::uint64_t deadline) {
    CHECK(machine::interrupts_enabled());
    SchedulerGuard guard;
    // As in XNU, a thread that waits for nothing but time waits for the function that does it.
    scheduler::assert_wait(guard, {.event = std::bit_cast<const void*>(&sleep_until)}, deadline);
    scheduler::block(guard);
}

void sleep_microseconds(std::uint64_t microseconds) {
    sleep_until(machine::absolute_time() + nanoseconds_to_absolute_time(microseconds * 1000));
}

void sleep_milliseconds(std::uint64_t milliseconds) {
    sleep_microseconds(milliseconds * 1000);
}

}  // namespace kernel
