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
class CountedTrap final : public stackshot::ForwardingBody {
  public:
    using ForwardingBody::ForwardingBody;
    void initiator(stackshot::Quiesced& quiesced) override {
        const std::uint32_t before = platform::pmu::instructions_retired();
        ForwardingBody::initiator(quiesced);
        instructions = platform::pmu::instructions_retired() - before;
    }

    std::uint32_t instructions = 0;
};

/// Takes a capture with these flags more and throws it away. False after a failure.
bool measure_one(Verdict& verdict, std::uint64_t flags, Cost& cost) {
    stackshot::System& system = stackshot_system();
    stackshot::Request request;
    request.flags =
        STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_LOADINFO | STACKSHOT_GET_GLOBAL_MEM_STATS | flags;
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

/// One system, captured with all that is asked for by default, without latency records, and
/// without wait infos.
struct Costs {
    Cost whole, without_latencies, without_waits;
};

bool measure(Verdict& verdict, Costs& costs) {
    return measure_one(verdict, STACKSHOT_THREAD_WAITINFO, costs.whole) &&
           measure_one(verdict, STACKSHOT_THREAD_WAITINFO | STACKSHOT_DISABLE_LATENCY_INFO,
                       costs.without_latencies) &&
           measure_one(verdict, 0, costs.without_waits);
}

/// What a thread and a frame cost, from three systems that differ in their threads only.
struct Shares {
    std::int64_t frames_of_shallow = 0, frames_of_deep = 0;
    std::int64_t cost_of_shallow = 0, cost_of_deep = 0;

    Shares(const Cost& before, const Cost& with_shallow, const Cost& with_deep)
        : frames_of_shallow(with_shallow.frames - before.frames),
          frames_of_deep(with_deep.frames - with_shallow.frames),
          cost_of_shallow(with_shallow.instructions - before.instructions),
          cost_of_deep(with_deep.instructions - with_shallow.instructions) {}

    bool counted() const {
        return frames_of_deep > frames_of_shallow && cost_of_deep > cost_of_shallow;
    }
    std::int64_t per_frame() const {
        return (cost_of_deep - cost_of_shallow) / (frames_of_deep - frames_of_shallow);
    }
    std::int64_t per_thread(std::int64_t threads) const {
        return (cost_of_shallow - per_frame() * frames_of_shallow) / threads;
    }
};

}  // namespace

void cost_test(Verdict& verdict) {
    if (!platform::pmu::available() || !platform::pmu::start())
        return verdict.fail("this CPU counts no instructions");
    if (machine::online_cpus() != 1)
        return verdict.fail("only with one CPU do its instructions measure the whole trap");
    // From each system to the next only threads come along, shallow ones, then deep ones.
    constexpr std::int64_t threads = 200;
    constexpr std::size_t shallow = 4;
    constexpr std::size_t deep = 24;
    Costs before, with_shallow, with_deep;
    if (!measure(verdict, before) ||
        !start_waiting_tasks(verdict,
                             {.tasks = 1, .threads_per_task = threads, .depth = shallow}) ||
        !measure(verdict, with_shallow) ||
        !start_waiting_tasks(verdict, {.tasks = 1, .threads_per_task = threads, .depth = deep}) ||
        !measure(verdict, with_deep))
        return;
    const Shares whole(before.whole, with_shallow.whole, with_deep.whole);
    const Shares without_latencies(before.without_latencies, with_shallow.without_latencies,
                                   with_deep.without_latencies);
    const Shares without_waits(before.without_waits, with_shallow.without_waits,
                               with_deep.without_waits);
    if (!whole.counted() || !without_latencies.counted() || !without_waits.counted())
        return verdict.fail("%ld frames took %ld instructions, %ld frames %ld (-icount is needed)",
                            whole.frames_of_shallow, whole.cost_of_shallow, whole.frames_of_deep,
                            whole.cost_of_deep);
    console::print(
        "cost: %ld instructions a thread and %ld a frame in the trap, %ld a thread without its "
        "latencies, %ld without its wait infos; %zu bytes a thread with %ld frames\n",
        whole.per_thread(threads), whole.per_frame(), without_latencies.per_thread(threads),
        without_waits.per_thread(threads),
        (with_shallow.whole.bytes - before.whole.bytes) / static_cast<std::size_t>(threads),
        whole.frames_of_shallow / threads);
}

}  // namespace kernel::selftest
