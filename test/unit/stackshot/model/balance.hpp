#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stackshot/system.hpp"

namespace model {

/// How evenly a collection's work was spread over the CPUs.
struct Balance {
    std::string failure{};  ///< why there is no figure; empty: there is
    double largest = 0;     ///< share of the work ÷ the mean
    double late = 0;        ///< time until the barrier ÷ what it would be, evenly divided
};

/// Measures a collection of tasks with so many threads each, by `cpus` CPUs (16 at most), the last
/// `e_cores` of which are E cores: the collector itself on the model's CPUs, in virtual time. Each
/// read of the system takes its time; what it costs to share the work is left out, so that the
/// figures tell of how it is divided.
Balance measure_balance(const std::vector<std::size_t>& tasks, stackshot::CpuIndex cpus,
                        stackshot::CpuIndex e_cores);

}  // namespace model
