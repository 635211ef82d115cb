#include <cstdint>

#include "kcdata/stackshot_flags.hpp"
#include "kernel/console.hpp"
#include "kernel/machine.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/selftest/waiting_tasks.hpp"
#include "kernel/stackshot_system.hpp"
#include "platform/arm64/cpu/pmu.hpp"
#include "stackshot/attempt.hpp"
#include "stackshot/capture.hpp"
#include "stackshot/estimate.hpp"
#include "stackshot/request.hpp"

// What a thread and a frame cost in the trap: instructions, counted by the PMU.
namespace kernel::selftest {
namespace {

using namespace kcdata;

struct Cost {
    std::int64_t instructions = 0;
    std::int64_t frames = 0;
    std::size_t bytes = 0;
};

/// Counts the instructions of the CPU that asked for the stop.
class CountedTrap final : public stackshot::TrapBody {
  public:
    explicit CountedTrap(stackshot::TrapBody& body) : body_(body) {}
    void cpu_preflight(CpuIndex cpu) override { body_.cpu_preflight(cpu); }
    void initiator(stackshot::Quiesced& quiesced) override {
        const std::uint32_t before = platform::pmu::instructions_retired();
        body_.initiator(quiesced);
        instructions = platform::pmu::instructions_retired() - before;
    }
    void auxiliary(stackshot::Quiesced& quiesced) override { body_.auxiliary(quiesced); }

    std::uint32_t instructions = 0;

  private:
    stackshot::TrapBody& body_;
};

/// Takes a capture and throws it away. False after a failure.
bool measure(Verdict& verdict, Cost& cost) {
    stackshot::System& system = stackshot_system();
    stackshot::Request request;
    request.flags =
        STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_LOADINFO | STACKSHOT_GET_GLOBAL_MEM_STATS;
    const auto estimate = stackshot::estimate_stackshot(system.facts(), system.task_count(),
                                                        system.thread_count(), request);
    stackshot::Attempt attempt(system);
    if (attempt.prepare(request, estimate, estimate.size,
                        stackshot::select_mode(system.facts(), request)) != KERN_SUCCESS) {
        verdict.fail("no memory for a capture");
        return false;
    }
    stackshot::Collection* const collection = &attempt.collection();
    stackshot::CaptureTrap body(std::span(&collection, 1));
    CountedTrap counted(body);
    system.trap(counted);
    auto assembled = attempt.assemble({});
    if (!assembled.ok()) {
        verdict.fail("the capture failed: %s", kern_return_name(assembled.error()));
        return false;
    }
    cost = {counted.instructions, static_cast<std::int64_t>(collection->counts().frames),
            assembled->size};
    system.free(assembled->buffer);
    return true;
}

}  // namespace

void cost_test(Verdict& verdict) {
    if (!platform::pmu::available() || !platform::pmu::start())
        return verdict.fail("this CPU counts no instructions");
    if (machine::online_cpus() != 1)
        return verdict.fail("only with one CPU do its instructions measure the whole trap");
    // Three captures; from each to the next only threads come along, shallow ones, then deep ones.
    constexpr std::int64_t threads = 200;
    constexpr std::size_t shallow = 4;
    constexpr std::size_t deep = 24;
    Cost before, with_shallow, with_deep;
    if (!measure(verdict, before) ||
        !start_waiting_tasks(verdict,
                             {.tasks = 1, .threads_per_task = threads, .depth = shallow}) ||
        !measure(verdict, with_shallow) ||
        !start_waiting_tasks(verdict, {.tasks = 1, .threads_per_task = threads, .depth = deep}) ||
        !measure(verdict, with_deep))
        return;
    const std::int64_t shallow_cost = with_shallow.instructions - before.instructions;
    const std::int64_t deep_cost = with_deep.instructions - with_shallow.instructions;
    const std::int64_t shallow_frames = with_shallow.frames - before.frames;
    const std::int64_t deep_frames = with_deep.frames - with_shallow.frames;
    if (deep_frames <= shallow_frames || deep_cost <= shallow_cost)
        return verdict.fail("%ld frames took %ld instructions, %ld frames %ld (-icount is needed)",
                            shallow_frames, shallow_cost, deep_frames, deep_cost);
    const std::int64_t per_frame = (deep_cost - shallow_cost) / (deep_frames - shallow_frames);
    const std::int64_t per_thread = (shallow_cost - per_frame * shallow_frames) / threads;
    console::print(
        "cost: %ld instructions a thread and %ld a frame in the trap; %zu bytes a thread "
        "with %ld frames\n",
        per_thread, per_frame,
        (with_shallow.bytes - before.bytes) / static_cast<std::size_t>(threads),
        shallow_frames / threads);
}

}  // namespace kernel::selftest
