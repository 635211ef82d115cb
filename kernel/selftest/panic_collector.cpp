#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kcdata/stackshot_flags.hpp"
#include "kernel/absolute_time.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/machine.hpp"
#include "kernel/panic.hpp"
#include "kernel/selftest/forwarding_system.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/selftest/waiting_tasks.hpp"
#include "kernel/spinlock.hpp"
#include "stackshot/request.hpp"
#include "stackshot/stackshot.hpp"

// Panics on purpose inside an ordinary capture: `panic.on` says on which CPU, `panic.at` at which
// step of the collector, and `panic.by` how.
namespace kernel::selftest {
namespace {

using namespace stackshot;

enum class On : std::uint8_t { initiator, auxiliary, both };
enum class At : std::uint8_t { record, preflight, hang };

/// The kernel, with a collector that panics in it.
class PanickingSystem final : public ForwardingSystem {
  public:
    explicit PanickingSystem(BootArguments& arguments) : facts_(real().facts()) {
        constexpr std::array<std::string_view, 3> on = {"initiator", "auxiliary", "both"};
        constexpr std::array<std::string_view, 3> at = {"record", "preflight", "hang"};
        constexpr std::array<std::string_view, 2> by = {"call", "exception"};
        on_ = static_cast<On>(arguments.choice("panic.on", on, 0));
        at_ = static_cast<At>(arguments.choice("panic.at", at, 0));
        by_exception_ = arguments.choice("panic.by", by, 0) == 1;
        if (at_ == At::hang)
            facts_.tunables.worker_timeout = nanoseconds_to_absolute_time(200'000'000);
    }

    const SystemFacts& facts() const override { return facts_; }
    TrapOutcome trap(TrapBody& body) override {
        const InterruptsOff stay;
        initiator_ = machine::current_cpu();
        return real().trap(body);
    }
    void trace(TraceEvent event, std::uint64_t word, const char* file,
               std::uint32_t line) override {
        real().trace(event, word, file, line);
        if (event == TraceEvent::preflight && at_ == At::preflight && chosen())
            go_wrong();
    }
    kcdata::kern_return task_facts(Quiesced& quiesced, TaskRef task, TaskFacts& facts) override {
        if (at_ != At::preflight) {
            if (chosen())
                go_wrong();
            // The others leave it the work.
            while (on_ == On::auxiliary && !gone_wrong_.load())
                machine::wait_for_event();
        }
        return real().task_facts(quiesced, task, facts);
    }

  private:
    bool chosen() const {
        return on_ == On::both || (on_ == On::initiator) == (machine::current_cpu() == initiator_);
    }
    [[gnu::noinline]] void go_wrong() {
        machine::interrupts_disable();
        const bool first = !gone_wrong_.exchange(true);
        // One is to go wrong, or all of them at the same time.
        if (!first && on_ != On::both)
            return;
        working_.fetch_add(1);
        while (on_ == On::both && working_.load() < 2)
            machine::wait_for_event();
        while (at_ == At::hang)
            machine::wait_for_event();
        if (by_exception_)
            *reinterpret_cast<volatile std::uint64_t*>(std::uintptr_t{0xdead'beef'0}) = 1;
        panic("in the collector");
    }

    SystemFacts facts_;
    On on_;
    At at_;
    bool by_exception_;
    CpuIndex initiator_ = no_cpu;
    std::atomic<bool> gone_wrong_{false};
    std::atomic<int> working_{0};
};

}  // namespace

void panic_collector_test(Verdict& verdict) {
    if (!start_waiting_tasks(verdict, {.tasks = 20, .threads_per_task = 3, .depth = 2}))
        return;
    PanickingSystem system(boot_arguments());
    Request request;
    request.flags = kcdata::STACKSHOT_KCDATA_FORMAT;
    (void)take_stackshot(system, request);
    verdict.fail("there was no panic");
}

}  // namespace kernel::selftest
