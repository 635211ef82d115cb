#include "kernel/secondaries.hpp"

#include <array>
#include <atomic>

#include "kernel/absolute_time.hpp"
#include "kernel/console.hpp"
#include "kernel/cpu.hpp"
#include "kernel/heap.hpp"
#include "kernel/kernel_stack.hpp"
#include "kernel/machine_arm64.hpp"
#include "kernel/quiesce.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/sleep.hpp"
#include "platform/arm64/cpu/interrupts.hpp"
#include "platform/arm64/cpu/secondary.hpp"
#include "platform/arm64/psci/psci.hpp"

namespace kernel {
namespace {

namespace psci = platform::psci;

/// How long all CPUs together may take from their start until they are online. Under emulation with
/// many more vCPUs than host CPUs a second is not enough.
constexpr std::uint64_t online_timeout_milliseconds = 20'000;

enum class Progress : std::uint8_t { not_started, requested, online, failed };

/// A CPU that is being started; written by the starter, then by the CPU itself.
struct Secondary {
    CpuIndex cpu = no_cpu;
    KernelStack stack{};
    KernelStack overflow_stack{};
    Thread* idle = nullptr;
    platform::GicStatus gic_status = platform::GicStatus::ok;
    std::atomic<Progress> progress{Progress::not_started};
};
constinit std::array<Secondary, max_cpus> secondaries{};

void print_cpu(const platform::Board& board, CpuIndex cpu, const char* what) {
    console::print("cpu %u (MPIDR 0x%lx) %s\n", cpu, board.cpus[cpu].mpidr.value(), what);
}

/// For a CPU that does not run on what it was given, and never will.
void take_back(Secondary& secondary) {
    if (secondary.idle != nullptr)
        idle_thread_discard(*secondary.idle);
    secondary.idle = nullptr;
    for (KernelStack* stack : {&secondary.stack, &secondary.overflow_stack}) {
        if (stack->valid())
            free_kernel_stack(*stack);
        *stack = {};
    }
    secondary.progress.store(Progress::not_started, std::memory_order_relaxed);
}

/// Says so if it cannot be started.
void start(const platform::Board& board, CpuIndex cpu) {
    Secondary& secondary = secondaries[cpu];
    secondary.cpu = cpu;
    secondary.stack = allocate_kernel_stack();
    secondary.overflow_stack = allocate_kernel_stack();
    if (auto idle = idle_thread_create(cpu, secondary.stack); idle.ok())
        secondary.idle = idle.value();
    if (!secondary.stack.valid() || !secondary.overflow_stack.valid() ||
        secondary.idle == nullptr) {
        print_cpu(board, cpu, "not started: no memory");
        take_back(secondary);
        return;
    }
    secondary.progress.store(Progress::requested, std::memory_order_relaxed);
    const platform::StartResult result =
        platform::start_secondary(board, cpu,
                                  {.stack_top = secondary.stack.high,
                                   .overflow_stack_top = secondary.overflow_stack.high,
                                   .argument = &secondary});
    if (result.ok())
        return;
    console::print("cpu %u (MPIDR 0x%lx) not started: %s\n", cpu, board.cpus[cpu].mpidr.value(),
                   platform::name(result));
    if (!result.may_still_come())
        take_back(secondary);
}

/// False, and said so, if it is not online when `deadline` comes.
bool wait_for(const platform::Board& board, CpuIndex cpu, std::uint64_t deadline) {
    Secondary& secondary = secondaries[cpu];
    const platform::Mpidr mpidr = board.cpus[cpu].mpidr;
    bool failed = false;
    for (;; sleep_milliseconds(1)) {
        // Acquire: gic_status.
        const Progress progress = secondary.progress.load(std::memory_order_acquire);
        if (progress == Progress::online) {
            print_cpu(board, cpu, "online");
            return true;
        }
        if (progress == Progress::failed && !failed) {
            failed = true;
            console::print("cpu %u (MPIDR 0x%lx) stopped: %s\n", cpu, mpidr.value(),
                           platform::name(secondary.gic_status));
        }
        // It runs on its stack until it is off.
        if (failed && psci::affinity_info(mpidr) == psci::AffinityState::OFF) {
            take_back(secondary);
            return false;
        }
        if (machine::absolute_time() >= deadline) {
            console::print("cpu %u (MPIDR 0x%lx) was started, but %s in time (AFFINITY_INFO: %s)\n",
                           cpu, mpidr.value(), failed ? "is not off" : "did not get online",
                           psci::name(psci::affinity_info(mpidr)));
            return false;
        }
    }
}

}  // namespace

void start_secondaries(const platform::Board& board) {
    const auto count = static_cast<CpuIndex>(board.cpus.size());
    print_cpu(board, machine::current_cpu(), "online");
    for (CpuIndex cpu = 1; cpu < count; cpu++)
        start(board, cpu);
    const std::uint64_t deadline =
        machine::absolute_time() + milliseconds_to_absolute_time(online_timeout_milliseconds);
    CpuIndex online = 1;
    for (CpuIndex cpu = 1; cpu < count; cpu++)
        if (secondaries[cpu].progress.load(std::memory_order_relaxed) != Progress::not_started &&
            wait_for(board, cpu, deadline))
            online++;
    console::print("%u of %u CPUs online\n", online, count);
    if (board.cpus_left_out != 0)
        console::print("%u CPUs beyond %u are not used\n", board.cpus_left_out, max_cpus);
}

}  // namespace kernel

namespace platform {

/// In the idle thread of the CPU that was started.
void kernel_secondary_main(void* argument) {
    using namespace kernel;
    auto& self = *static_cast<Secondary*>(argument);
    machine::adopt_cpu(self.cpu);
    cpu::serrors_enable();
    self.gic_status = machine::initialize_cpu_interrupts();
    if (self.gic_status != GicStatus::ok) {
        // Release: gic_status.
        self.progress.store(Progress::failed, std::memory_order_release);
        [[maybe_unused]] const psci::Status status = psci::cpu_off();
        machine::halt();
    }
    quiesce().admit();
    {
        SchedulerGuard guard;
        scheduler::adopt_idle_thread(guard, *self.idle);
    }
    self.progress.store(Progress::online, std::memory_order_release);
    scheduler::idle();
}

}  // namespace platform
