#include "kernel/stackshot_service.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "kcdata/reader.hpp"
#include "kcdata/types.hpp"
#include "kernel/absolute_time.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/capture_sender.hpp"
#include "kernel/console.hpp"
#include "kernel/panic.hpp"
#include "kernel/shutdown.hpp"
#include "kernel/sleep.hpp"
#include "kernel/stackshot_call.hpp"
#include "kernel/stackshot_config.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"
#include "kernel/trace.hpp"
#include "stackshot/stackshot.hpp"

namespace kernel {
namespace {

using namespace kcdata;
using console::print;

constinit StackshotPlan the_plan;

/// When a capture was taken, in absolute time; 0 if it does not tell.
std::uint64_t capture_time(std::span<const std::byte> capture) {
    Reader reader(capture);
    std::uint64_t time = 0;
    for (Item item; reader.next(item);) {
        if (item.type == KCDATA_TYPE_MACH_ABSOLUTE_TIME && item.payload.size() == sizeof(time)) {
            std::memcpy(&time, item.payload.data(), sizeof(time));
            break;
        }
    }
    return time;
}

void serve(void* argument) {
    const auto& plan = *static_cast<const StackshotPlan*>(argument);
    StackshotSeries series(plan);
    for (std::uint64_t number = 1; number <= plan.count; number++) {
        sleep_milliseconds(number == 1 ? plan.delay_milliseconds : plan.interval_milliseconds);
        if (const auto error = series.next(); error != stackshot::BSD_SUCCESS) {
            print("stackshot: %lu of %lu: failed: %s\n", number, plan.count,
                  stackshot::bsd_errno_name(error));
            print_trace();
        }
    }
    if (plan.off_then)
        shut_down();
}

}  // namespace

StackshotPlan read_stackshot_plan(BootArguments& arguments) {
    StackshotPlan plan;
    plan.count = arguments.number("stackshot.count", 1);
    plan.delay_milliseconds = arguments.number("stackshot.delay_ms", 1000);
    plan.interval_milliseconds = arguments.number("stackshot.interval_ms", 1000);
    plan.config.sc_pid = -1;
    if (arguments.find("stackshot.pid"))
        plan.config.sc_pid =
            static_cast<std::int32_t>(arguments.number("stackshot.pid", 0, 0, INT32_MAX));
    plan.config.sc_flags = arguments.number(
        "stackshot.flags", STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_LOADINFO |
                               STACKSHOT_GET_GLOBAL_MEM_STATS | STACKSHOT_THREAD_WAITINFO);
    if (arguments.flag("stackshot.compress", false))
        plan.config.sc_flags |= STACKSHOT_DO_COMPRESS;
    constexpr std::array<std::string_view, 2> then = {"run", "off"};
    plan.off_then = arguments.choice("stackshot.then", then, 0) == 1;
    return plan;
}

stackshot::bsd_errno StackshotSeries::next() {
    number_++;
    stackshot_config wanted = plan_.config;
    if (!full_taken_)
        wanted.sc_flags &= ~STACKSHOT_COLLECT_DELTA_SNAPSHOT;
    else if ((wanted.sc_flags & STACKSHOT_COLLECT_DELTA_SNAPSHOT) != 0)
        wanted.sc_delta_timestamp = last_capture_time_;
    StackshotConfig config(kernel_task());
    if (const stackshot::bsd_errno error = config.capture(wanted); error != stackshot::BSD_SUCCESS)
        return error;
    const auto data = config.buffer();
    last_capture_time_ = capture_time(data);
    full_taken_ = true;
    const stackshot::Statistics statistics = stackshot_subsystem().last_capture();
    const std::uint64_t send_begin = machine::absolute_time();
    const kern_return sent = send_capture(data);
    console::flush();
    const std::uint64_t send_time = machine::absolute_time() - send_begin;
    print(
        "stackshot: %lu of %lu: %zu bytes, %lu tasks, %lu threads, %lu frames, %u tries, "
        "%d cpus worked, %d absent; prepare %lu us, trap %lu us (interrupts off %lu us), "
        "assemble %lu us, send %lu us; at most %zu KiB of memory\n",
        number_, plan_.count, data.size(), statistics.tasks, statistics.threads, statistics.frames,
        statistics.tries, __builtin_popcountll(statistics.workers),
        __builtin_popcountll(statistics.absent),
        absolute_time_to_microseconds(statistics.prepare_time),
        absolute_time_to_microseconds(statistics.trap_time),
        absolute_time_to_microseconds(statistics.interrupts_off),
        absolute_time_to_microseconds(statistics.assemble_time),
        absolute_time_to_microseconds(send_time), statistics.peak_memory >> 10);
    return stackshot::bsd_error(sent);
}

void start_stackshot_service() {
    the_plan = read_stackshot_plan(boot_arguments());
    if (the_plan.count == 0 && !the_plan.off_then)
        return;
    start_kernel_thread("stackshot", serve, &the_plan);
}

}  // namespace kernel
