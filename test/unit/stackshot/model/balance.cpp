#include "test/unit/stackshot/model/balance.hpp"

#include <algorithm>
#include <numeric>

#include "stackshot/estimate.hpp"
#include "test/unit/stackshot/model/model_system.hpp"

namespace model {

using namespace stackshot;

namespace {

/// In instructions, about as the image's self test `cost` counts them.
constexpr Costs costs{
    .next_task = 60,
    .task_thread_count = 60,
    .skipped_thread = 10,
    .task = 900,
    .thread = 850,
    .slowness_of_e = 250,
};

}  // namespace

Balance measure_balance(const std::vector<std::size_t>& tasks, CpuIndex cpus, CpuIndex e_cores) {
    ModelSystem system(cpus, 2);
    system.costs = costs;
    system.cluster_of_cpu.assign(cpus, 0);
    if (e_cores != 0) {
        system.constant.cluster_types = {ClusterType::P, ClusterType::E};
        std::fill_n(system.cluster_of_cpu.rbegin(), e_cores, 1);
    }
    std::size_t threads = 0;
    for (const std::size_t count : tasks) {
        system.add_task("task", count, 0);
        threads += count;
    }
    const Estimate estimate = estimate_stackshot(system.facts(), tasks.size(), threads, {});
    Scheduler scheduler(1, cpus, Scheduler::Order::virtual_time);
    const Outcome outcome = system.collect(scheduler, {}, estimate, 2 * estimate.size);
    if (!outcome.failure.empty() || outcome.error != kcdata::KERN_SUCCESS) {
        return {.failure = outcome.failure.empty() ? kcdata::kern_return_name(outcome.error)
                                                   : outcome.failure};
    }
    const auto sum = static_cast<double>(
        std::accumulate(outcome.worked.begin(), outcome.worked.end(), std::uint64_t{0}));
    const auto most =
        static_cast<double>(*std::max_element(outcome.worked.begin(), outcome.worked.end()));
    return {"", most * cpus / sum, static_cast<double>(outcome.makespan) * cpus / sum};
}

}  // namespace model
