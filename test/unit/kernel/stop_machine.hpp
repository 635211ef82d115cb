#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "kernel/machine.hpp"
#include "stackshot/system.hpp"

/// A machine for the quiesce protocol: host threads are CPUs, and the one interrupt is the stop
/// SGI, taken when a CPU polls for it with interrupts unmasked.
namespace stop_machine {

/// What machine::halt() ends a CPU's thread with.
struct Halted {};

/// CPUs 0 to count - 1, with no SGI pending; those in `online` are online, the others until they
/// announce themselves. `on_stop` is the SGI's handler.
void power_on(kernel::CpuIndex count, std::function<void()> on_stop,
              kernel::CpuMask online = ~kernel::CpuMask{0});
/// The calling thread is `cpu` from now on, with interrupts unmasked.
void become(kernel::CpuIndex cpu);
/// Takes a pending SGI if interrupts are unmasked. What a running CPU does between instructions.
void poll();
/// Whether `cpu` has halted.
bool halted(kernel::CpuIndex cpu);

/// Runs `body(cpu)` on a thread for each CPU of `count`, to the end; a CPU that halts just ends.
template <typename Body>
void run_cpus(kernel::CpuIndex count, Body body) {
    std::vector<std::thread> threads;
    for (kernel::CpuIndex cpu = 0; cpu < count; cpu++)
        threads.emplace_back([cpu, &body] {
            become(cpu);
            try {
                body(cpu);
            } catch (const Halted&) {
            }
        });
    for (auto& thread : threads)
        thread.join();
}

}  // namespace stop_machine
