#include "kernel/workload/daemons.hpp"
#include "kernel/workload/scene.hpp"

namespace kernel::workload {

/// tasks (6) that come and go at a time.
void start_churn(const Size& size) {
    start_crond(size.tasks != 0 ? size.tasks : 6);
}

/// Everything at once: the daemons, and each situation that leaves CPUs to the others.
void start_storm(const Size& size) {
    start_daemons(size);
    start_deadlock_ring(size);
    start_port_cycle(size);
    start_lock_convoy(size);
    start_reader_starvation(size);
    start_lost_wakeup(size);
    start_deep_recursion(size);
}

}  // namespace kernel::workload
