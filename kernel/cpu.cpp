#include "kernel/cpu.hpp"

#include "kernel/panic.hpp"

namespace kernel {

constinit std::array<Cpu, max_cpus> cpus{};

Cpu& cpu_at(CpuIndex cpu) {
    CHECK(cpu < max_cpus);
    return cpus[cpu];
}

Cpu& this_cpu() {
    return cpus[machine::current_cpu()];
}

}  // namespace kernel
