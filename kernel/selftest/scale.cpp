#include <cstdint>
#include <string_view>

#include "kcdata/reader.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "kcdata/types.hpp"
#include "kernel/absolute_time.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/console.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/selftest/waiting_tasks.hpp"
#include "kernel/stackshot_system.hpp"
#include "stackshot/stackshot.hpp"

// A capture of many threads.
namespace kernel::selftest {
namespace {

using namespace kcdata;

constexpr std::uint64_t flags =
    STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_LOADINFO | STACKSHOT_GET_GLOBAL_MEM_STATS;

struct Capture {
    stackshot::Statistics statistics{};
    std::size_t size = 0;
    std::size_t tasks = 0, threads = 0;  ///< found in the finished buffer
};

/// Takes a capture and checks that there is none, for this reason.
void capture_fails(Verdict& verdict, std::string_view expected) {
    stackshot::Request request;
    request.flags = flags;
    auto taken = stackshot::take_stackshot(stackshot_system(), request);
    if (taken.ok()) {
        stackshot_system().free(taken->buffer);
        return verdict.fail("a capture of %zu bytes", taken->size);
    }
    if (kern_return_name(taken.error()) != expected)
        return verdict.fail("the capture failed: %s", kern_return_name(taken.error()));
    console::print("scale: %s, as is right\n", kern_return_name(taken.error()));
}

/// Takes a capture, checks that it is valid, and frees it. False after a failure.
bool capture(Verdict& verdict, Capture& result) {
    stackshot::System& system = stackshot_system();
    stackshot::Request request;
    request.flags = flags;
    auto taken = stackshot::take_stackshot(system, request);
    if (!taken.ok()) {
        verdict.fail("the capture failed: %s", kern_return_name(taken.error()));
        return false;
    }
    result.statistics = taken->statistics;
    result.size = taken->size;
    Reader reader(taken->data());
    for (Item item; reader.next(item);) {
        result.tasks += item.type == STACKSHOT_KCTYPE_TASK_SNAPSHOT ||
                        item.type == STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT;
        result.threads += item.type == STACKSHOT_KCTYPE_THREAD_SNAPSHOT;
    }
    if (reader.error() != ReadError::none)
        verdict.fail("the capture is not valid kcdata: %s at %zu", read_error_text(reader.error()),
                     reader.offset());
    if (result.tasks != result.statistics.tasks || result.threads != result.statistics.threads)
        verdict.fail("%zu tasks and %zu threads were written, %lu and %lu counted", result.tasks,
                     result.threads, result.statistics.tasks, result.statistics.threads);
    if (result.statistics.absent != 0)
        verdict.fail("CPUs %016lx did not answer", result.statistics.absent);
    system.free(taken->buffer);
    return !verdict.failed();
}

}  // namespace

void scale_test(Verdict& verdict) {
    BootArguments& arguments = boot_arguments();
    WaitingTasks wanted;
    wanted.tasks = arguments.number("scale.tasks", 100, 1, 10'000);
    wanted.threads_per_task = arguments.number("scale.threads", 100, 1, 10'000);
    wanted.depth = arguments.number("scale.depth", 4, 0, 100);
    if (!start_waiting_tasks(verdict, wanted))
        return;
    // Where there is not the memory for it.
    if (const auto error = arguments.find("scale.error"))
        return capture_fails(verdict, *error);
    Capture result;
    if (!capture(verdict, result))
        return;
    if (result.tasks < wanted.tasks || result.threads < wanted.tasks * wanted.threads_per_task)
        verdict.fail("%zu tasks and %zu threads captured of %zu times %zu", result.tasks,
                     result.threads, wanted.tasks, wanted.threads_per_task);
    const stackshot::Statistics& s = result.statistics;
    console::print(
        "scale: %lu tasks, %lu threads, %lu frames, %zu bytes, %u tries, %d cpus worked; "
        "prepare %lu us, trap %lu us (interrupts off %lu us), assemble %lu us\n",
        s.tasks, s.threads, s.frames, result.size, s.tries, __builtin_popcountll(s.workers),
        absolute_time_to_microseconds(s.prepare_time), absolute_time_to_microseconds(s.trap_time),
        absolute_time_to_microseconds(s.interrupts_off),
        absolute_time_to_microseconds(s.assemble_time));
}

}  // namespace kernel::selftest
