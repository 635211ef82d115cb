#pragma once

#include <cstddef>

#include "kernel/selftest/selftest.hpp"

namespace kernel::selftest {

/// Tasks whose threads all wait at the same depth, for captures of a known size.
struct WaitingTasks {
    std::size_t tasks = 0;
    std::size_t threads_per_task = 0;
    /// Frames each thread has besides what entry and waiting take.
    std::size_t depth = 0;
};

/// Starts them and returns when all of them wait; false (and a failed verdict) if that did not come
/// about. They are for as long as the system lives.
bool start_waiting_tasks(Verdict& verdict, const WaitingTasks& wanted);

}  // namespace kernel::selftest
