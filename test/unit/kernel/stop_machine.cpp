#include "test/unit/kernel/stop_machine.hpp"

#include <array>
#include <chrono>

namespace stop_machine {
namespace {

std::array<std::atomic<bool>, kernel::max_cpus> stop_pending;
std::array<std::atomic<bool>, kernel::max_cpus> cpu_halted;
kernel::CpuIndex cpu_count = 0;
std::atomic<kernel::CpuMask> cpus_online{0};
std::function<void()> stop_handler;

thread_local kernel::CpuIndex this_cpu = kernel::no_cpu;
thread_local bool interrupts = true;

}  // namespace

void power_on(kernel::CpuIndex count, std::function<void()> on_stop, kernel::CpuMask online) {
    cpu_count = count;
    cpus_online = online & ((kernel::CpuMask{1} << count) - 1);
    stop_handler = std::move(on_stop);
    for (auto& pending : stop_pending)
        pending = false;
    for (auto& halted : cpu_halted)
        halted = false;
}

void become(kernel::CpuIndex cpu) {
    this_cpu = cpu;
    interrupts = true;
}

void poll() {
    if (!interrupts || !stop_pending[this_cpu].load(std::memory_order_relaxed))
        return;
    // The interrupt controller orders nothing; the protocol must do that itself.
    if (!stop_pending[this_cpu].exchange(false, std::memory_order_relaxed))
        return;
    interrupts = false;
    stop_handler();
    interrupts = true;
}

bool halted(kernel::CpuIndex cpu) {
    return cpu_halted[cpu];
}

}  // namespace stop_machine

namespace kernel::machine {

using namespace stop_machine;

CpuIndex current_cpu() {
    return this_cpu;
}

CpuMask online_cpus() {
    return cpus_online;
}

void announce_online() {
    cpus_online |= bit_of(this_cpu);
}

bool interrupts_enabled() {
    return interrupts;
}

bool interrupts_disable() {
    return std::exchange(interrupts, false);
}

void interrupts_restore(bool enabled) {
    interrupts = enabled;
    poll();
}

void wait_for_event() {
    std::this_thread::yield();
}

void send_event() {}

void halt() {
    cpu_halted[this_cpu] = true;
    throw Halted{};
}

std::uint64_t absolute_time() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

std::uint64_t ticks_per_second() {
    return 1'000'000'000;
}

void send_stop(CpuMask cpus) {
    for (CpuIndex cpu = 0; cpu < cpu_count; cpu++)
        if ((cpus >> cpu & 1) != 0)
            stop_pending[cpu].store(true, std::memory_order_relaxed);
}

}  // namespace kernel::machine
