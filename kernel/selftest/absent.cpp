#include <atomic>
#include <bit>
#include <cstdint>

#include "kcdata/reader.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "kernel/console.hpp"
#include "kernel/machine.hpp"
#include "kernel/quiesce.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/stackshot_system.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"
#include "stackshot/stackshot.hpp"

// A CPU that keeps its interrupts masked does not answer a stop. Captures go on without it and name
// it; when it comes it is held, given no work, and is a CPU like any other afterwards.
namespace kernel::selftest {
namespace {

using namespace kcdata;

constinit Semaphore masked;
std::atomic<CpuIndex> masked_cpu{no_cpu};
std::atomic<bool> unmask{false};
std::atomic<bool> went_on{false};
constinit Semaphore ended;

void keep_interrupts_masked(void*) {
    const bool enabled = machine::interrupts_disable();
    masked_cpu.store(machine::current_cpu(), std::memory_order_relaxed);
    masked.signal();
    while (!unmask.load(std::memory_order_relaxed)) {
    }
    machine::interrupts_restore(enabled);
    went_on.store(true, std::memory_order_relaxed);
    ended.signal();
}

/// CPUs that did not answer the stop of a capture.
CpuMask absent_from_capture(Verdict& verdict) {
    stackshot::Request request;
    request.flags = STACKSHOT_KCDATA_FORMAT;
    auto taken = stackshot::take_stackshot(stackshot_system(), request);
    if (!taken.ok()) {
        verdict.fail("the capture failed: %s", kern_return_name(taken.error()));
        return 0;
    }
    Reader reader(taken->data());
    for (Item item; reader.next(item);) {
    }
    if (reader.error() != ReadError::none)
        verdict.fail("the capture is not valid kcdata: %s", read_error_text(reader.error()));
    const CpuMask absent = taken->statistics.absent;
    if (const CpuMask wanted = machine::online_cpus() & ~absent;
        taken->statistics.workers != wanted)
        verdict.fail("CPUs %016lx worked, not %016lx", taken->statistics.workers, wanted);
    stackshot_system().free(taken->buffer);
    return absent;
}

/// Lets the masked CPU go on inside a stop and looks what becomes of it.
class LateArrival final : public stackshot::TrapBody {
  public:
    void cpu_preflight(CpuIndex) override {}
    void auxiliary(stackshot::Quiesced& quiesced) override {
        worked.fetch_or(bit_of(quiesced.cpu()), std::memory_order_relaxed);
    }
    void initiator(stackshot::Quiesced& quiesced) override {
        absent = quiesce().absent(quiesced);
        unmask.store(true, std::memory_order_relaxed);
        const std::uint64_t start = machine::absolute_time();
        const CpuIndex cpu = masked_cpu.load(std::memory_order_relaxed);
        do {
            arrived = quiesce().position(cpu, position) && position.exact;
            machine::wait_for_event();
        } while (!arrived && machine::absolute_time() - start < 10 * machine::ticks_per_second());
        held = !went_on.load(std::memory_order_relaxed);
    }

    std::atomic<CpuMask> worked{0};
    CpuMask absent = 0;
    CpuPosition position{};
    bool arrived = false;
    bool held = false;
};

}  // namespace

void absent_test(Verdict& verdict) {
    if (std::popcount(machine::online_cpus()) < 2)
        return verdict.fail("needs two CPUs");
    auto thread = thread_create(kernel_task(), "masked", keep_interrupts_masked, nullptr);
    if (!thread.ok())
        return verdict.fail("no thread");
    thread_start(*thread.value());
    masked.wait();
    const CpuMask silent = bit_of(masked_cpu.load(std::memory_order_relaxed));

    if (const CpuMask absent = absent_from_capture(verdict); absent != silent)
        verdict.fail("CPUs %016lx did not answer, not %016lx", absent, silent);

    LateArrival late;
    const stackshot::TrapOutcome outcome = stackshot_system().trap(late);
    if (outcome.absent != silent || late.absent != silent)
        verdict.fail("CPUs %016lx did not answer the stop, not %016lx", outcome.absent, silent);
    if (!late.arrived || !late.position.interrupted)
        verdict.fail("the late CPU did not arrive");
    if (!late.held)
        verdict.fail("the late CPU went on during the stop");
    if ((late.worked.load(std::memory_order_relaxed) & silent) != 0)
        verdict.fail("the late CPU was given work");

    ended.wait();
    if (const CpuMask absent = absent_from_capture(verdict); absent != 0)
        verdict.fail("CPUs %016lx did not answer afterwards", absent);
    console::print("absent: cpu %u was missed, came late, and was there again\n",
                   masked_cpu.load(std::memory_order_relaxed));
}

}  // namespace kernel::selftest
