#include "kernel/machine_arm64.hpp"

#include <array>
#include <atomic>
#include <span>

#include "kernel/cpu.hpp"
#include "kernel/panic.hpp"
#include "platform/arm64/cpu/barrier.hpp"
#include "platform/arm64/cpu/hints.hpp"
#include "platform/arm64/cpu/identity.hpp"
#include "platform/arm64/cpu/interrupts.hpp"
#include "platform/arm64/cpu/pmu.hpp"
#include "platform/arm64/exception/handlers.hpp"
#include "platform/arm64/timer/generic_timer.hpp"

namespace kernel::machine {
namespace {

namespace cpu = platform::cpu;
namespace timer = platform::timer;

/// More urgent than the others, which have platform::default_interrupt_priority.
constexpr std::uint8_t stop_priority = 0x80;
/// About how often a CPU in wait_for_event() looks again by itself.
constexpr std::uint64_t event_stream_hertz = 10'000;

constinit const platform::Board* the_board = nullptr;
constinit std::atomic<CpuMask> online{0};

}  // namespace

void adopt_cpu(CpuIndex index) {
    Cpu& self = cpu_at(index);
    self.index = index;
    cpu::set_per_cpu_pointer(&self);
    // An exception is reported with the CPU it was taken on, so not before that is known.
    platform::install_vectors();
}

void initialize_interrupts(const platform::Board& board) {
    the_board = &board;
    const platform::GicStatus status = platform::initialize_interrupt_controller(board);
    if (status != platform::GicStatus::ok)
        panic("interrupt controller: %s", platform::name(status));
    if (timer_interrupt().is_special())
        panic("the device tree names no interrupt of the virtual timer");
}

platform::GicStatus initialize_cpu_interrupts() {
    platform::InterruptController& gic = platform::interrupt_controller();
    platform::GicStatus status = gic.initialize_cpu();
    if (status != platform::GicStatus::ok)
        return status;
    gic.set_priority(stop_sgi, stop_priority);
    timer::stop();
    timer::enable_event_stream(timer::frequency() / event_stream_hertz);
    return gic.enable(timer_interrupt());
}

void announce_online() {
    online.fetch_or(bit_of(current_cpu()), std::memory_order_seq_cst);
}

platform::Intid timer_interrupt() {
    return timer::interrupt(*the_board);
}

CpuIndex current_cpu() {
    return static_cast<const Cpu*>(cpu::per_cpu_pointer())->index;
}

CpuMask online_cpus() {
    return online.load(std::memory_order_seq_cst);
}

bool interrupts_enabled() {
    return cpu::interrupts_enabled();
}

bool interrupts_disable() {
    return cpu::interrupts_disable();
}

void interrupts_restore(bool enabled) {
    cpu::interrupts_restore(enabled);
}

void wait_for_event() {
    cpu::wfe();
}

void send_event() {
    // Stores before this are visible to a CPU that wakes up from it.
    cpu::dsb_ishst();
    cpu::sev();
}

void wait_for_interrupt() {
    cpu::wfi();
}

void halt() {
    cpu::halt();
}

std::uint64_t absolute_time() {
    return timer::ticks();
}

std::uint64_t ticks_per_second() {
    return timer::frequency();
}

bool start_counters() {
    return platform::pmu::start();
}

stackshot::CpuCounters counters() {
    return {platform::pmu::cycles(), platform::pmu::instructions_retired()};
}

void set_timer(std::uint64_t deadline) {
    if (deadline == UINT64_MAX)
        timer::stop();
    else
        timer::set_deadline(deadline);
}

void send_reschedule(CpuIndex target) {
    const platform::Mpidr mpidr = the_board->cpus[target].mpidr;
    platform::interrupt_controller().send_sgi(reschedule_sgi, std::span(&mpidr, 1));
}

void send_stop(CpuMask targets) {
    // A panic sends it whatever there is; before the interrupt controller is found there is nobody.
    if (targets == 0)
        return;
    std::array<platform::Mpidr, max_cpus> mpidrs;
    std::size_t count = 0;
    for (CpuIndex target = 0; target < the_board->cpus.size(); target++)
        if ((targets & bit_of(target)) != 0)
            mpidrs[count++] = the_board->cpus[target].mpidr;
    platform::interrupt_controller().send_sgi(stop_sgi, std::span(mpidrs).first(count));
}

}  // namespace kernel::machine
