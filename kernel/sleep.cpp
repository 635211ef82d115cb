#include "kernel/sleep.hpp"

#include <bit>

#include "kernel/absolute_time.hpp"
#include "kernel/scheduler.hpp"

namespace kernel {

void sleep_until(std::uint64_t deadline) {
    CHECK(machine::interrupts_enabled());
    SchedulerGuard guard;
    // As in XNU, a thread that waits for nothing but time waits for the function that does it.
    const auto event = std::bit_cast<std::uint64_t>(&sleep_until);
    const WaitResult result = scheduler::wait(guard, event, deadline, false);
    CHECK(result == WaitResult::THREAD_TIMED_OUT);
}

void sleep_microseconds(std::uint64_t microseconds) {
    sleep_until(machine::absolute_time() + nanoseconds_to_absolute_time(microseconds * 1000));
}

void sleep_milliseconds(std::uint64_t milliseconds) {
    sleep_microseconds(milliseconds * 1000);
}

}  // namespace kernel
