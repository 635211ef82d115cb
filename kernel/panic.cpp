#include "kernel/panic.hpp"

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <string_view>

#include "kernel/boot_arguments.hpp"
#include "kernel/callers_registers.hpp"
#include "kernel/console.hpp"
#include "kernel/machine.hpp"
#include "kernel/panic_capture.hpp"
#include "kernel/quiesce.hpp"
#include "kernel/stackshot_system.hpp"
#include "kernel/trace.hpp"
#include "platform/arm64/exception/handlers.hpp"
#include "platform/arm64/mmu/layout.hpp"
#include "platform/arm64/psci/psci.hpp"
#include "stackshot/unwind.hpp"

namespace kernel {
namespace {

/// In the order of configure_panic()'s names.
enum class PanicAction : unsigned char { off, halt, reset };
PanicAction panic_action = PanicAction::off;
/// How many panics this machine is in; only the CPU that got through stop_for_panic() counts.
std::atomic<int> depth{0};

using console::print;

void print_backtrace(StoppedForGood& stopped, const stackshot::Registers& registers,
                     bool interrupted) {
    // Every stack is the upper half of a slot (platform/arm64/mmu/layout.hpp). The frame pointer
    // names it: after an overflow the stack pointer is already outside. An empty stack's is its
    // end, which lies in the next slot.
    const std::uint64_t slot = (registers.fp != 0 ? registers.fp : registers.sp - 1) &
                               ~(platform::mmu::stack_slot_size - 1);
    stackshot::StackFacts facts;
    facts.registers = registers;
    facts.interrupted = interrupted;
    facts.low = slot + platform::mmu::stack_slot_size - platform::mmu::stack_size;
    facts.high = slot + platform::mmu::stack_slot_size;
    std::array<std::uint64_t, 64> frames;
    const stackshot::Unwinder unwinder(stackshot_system());
    const stackshot::Walk walk = unwinder.walk(stopped, facts, frames);
    for (std::size_t i = 0; i < walk.count; i++)
        print("  #%-2zu %016lx\n", i, frames[i]);
    if (walk.truncated())
        print("  (%s)\n", stackshot::walk_end_text(walk.end));
}

void print_cpu(StoppedForGood& stopped, CpuIndex cpu) {
    print("cpu %u: ", cpu);
    const bool silent = (quiesce().absent(stopped) & bit_of(cpu)) != 0;
    CpuPosition position;
    if (cpu == stopped.cpu())
        print("panicked");
    else if (!quiesce().position(cpu, position))
        print("not known where");
    else
        print("%s pc %016lx lr %016lx fp %016lx sp %016lx",
              silent ? "did not stop, last seen at" : "stopped at", position.registers.pc,
              position.registers.lr, position.registers.fp, position.registers.sp);
    stackshot::ThreadFacts thread;
    const stackshot::ThreadRef current = thread_on_cpu(cpu);
    if (current != stackshot::ThreadRef::none &&
        stackshot_system().thread_facts(stopped, current, thread) == kcdata::KERN_SUCCESS)
        print(", thread %lu \"%s\"", thread.thread_id, thread.name);
    print("\n");
}

/// Turns the machine off or resets it; returns what PSCI said if it did not.
platform::psci::Status end_machine() {
    return panic_action == PanicAction::off ? platform::psci::system_off()
                                            : platform::psci::system_reset();
}

[[noreturn]] void finish() {
    console::flush();
    if (panic_action != PanicAction::halt) {
        const platform::psci::Status status = end_machine();
        print("PSCI %s: %s; halting\n",
              panic_action == PanicAction::off ? "SYSTEM_OFF" : "SYSTEM_RESET",
              platform::psci::name(status));
    }
    machine::halt();
}

/// Begins the report with `what`; ends a panic inside a panic, and without a word one inside that.
void begin(const char* what, const char* format, std::va_list arguments) {
    // Counted first of all: what goes wrong may be the console.
    const int before = depth.fetch_add(1, std::memory_order_relaxed);
    if (before == 2 && panic_action != PanicAction::halt)
        (void)end_machine();
    if (before >= 2)
        machine::halt();
    console::seize();
    print(before == 0 ? "\n%s: " : "\n%s inside a panic: ", what);
    console::print_v(format, arguments);
    print("\n");
    if (before != 0)
        finish();
}

[[gnu::format(printf, 2, 3)]] void begin_exception(const char* what, const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    begin(what, format, arguments);
    va_end(arguments);
}

void print_cpus(StoppedForGood& stopped) {
    const CpuMask online = machine::online_cpus() | bit_of(stopped.cpu());
    for (CpuIndex cpu = 0; cpu < max_cpus; cpu++)
        if ((online & bit_of(cpu)) != 0)
            print_cpu(stopped, cpu);
}

void print_registers(const platform::ExceptionFrame& frame) {
    for (unsigned i = 0; i < frame.x.size(); i++)
        print("x%-2u %016lx%s", i, frame.x[i], i % 4 == 3 ? "\n" : "  ");
    print("sp  %016lx\n", frame.sp);
    print("ELR_EL1 %016lx  SPSR_EL1 %016lx  FAR_EL1 %016lx\n", frame.elr, frame.spsr, frame.far);
}

/// What is the same in all panics, behind the first words: the report goes on, then the capture.
[[noreturn]] void conclude(StoppedForGood& stopped, const stackshot::Registers& registers,
                           bool interrupted) {
    stackshot_system_stopped(stopped);
    print_backtrace(stopped, registers, interrupted);
    print_cpus(stopped);
    print_trace();
    capture_in_panic(stopped, finish);
}

}  // namespace

void configure_panic(BootArguments& arguments) {
    constexpr std::array<std::string_view, 3> names = {"off", "halt", "reset"};
    panic_action = static_cast<PanicAction>(arguments.choice("panic", names, 0));
}

void panic(const char* format, ...) {
    const stackshot::Registers entry = callers_registers_at_call();
    // The CPU that panics goes on alone: from here on nobody else touches anything.
    StoppedForGood stopped = quiesce().stop_for_panic(entry, false);
    std::va_list arguments;
    va_start(arguments, format);
    begin("panic", format, arguments);
    va_end(arguments);
    conclude(stopped, entry, false);
}

}  // namespace kernel

namespace platform {

void handle_unexpected_exception(const ExceptionFrame& frame, Vector vector) {
    using namespace kernel;
    const stackshot::Registers interrupted{
        .pc = frame.elr,
        .lr = frame.lr(),
        .fp = frame.fp(),
        .sp = frame.sp,
    };
    StoppedForGood stopped = quiesce().stop_for_panic(interrupted, true);
    begin_exception("exception", "%s: %s (ESR_EL1 %08lx) at %016lx, FAR_EL1 %016lx", name(vector),
                    exception_class_name(frame.esr), frame.esr, frame.elr, frame.far);
    print_registers(frame);
    conclude(stopped, interrupted, true);
}

}  // namespace platform
