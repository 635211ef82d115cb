#include "kernel/workload/daemons.hpp"

namespace kernel::workload {

/// tasks: jobs of crond at a time (3). threads: workers in each pool (3). depth: frames of the
/// recursions (24).
void start_daemons(const Size& size) {
    const std::uint32_t jobs = size.tasks != 0 ? size.tasks : 3;
    const std::uint32_t threads = size.threads != 0 ? size.threads : 3;
    const std::uint32_t depth = size.depth != 0 ? size.depth : 24;
    start_ledgerd(threads);
    start_indexd(threads, depth);
    start_mediad(threads);
    start_solverd(threads, depth);
    start_crond(jobs);
}

}  // namespace kernel::workload
