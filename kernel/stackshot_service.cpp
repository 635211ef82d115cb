#include "kernel/stackshot_service.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "kcdata/serial/sender.hpp"
#include "kernel/absolute_time.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/console.hpp"
#include "kernel/panic.hpp"
#include "kernel/shutdown.hpp"
#include "kernel/sleep.hpp"
#include "kernel/stackshot_call.hpp"
#include "kernel/stackshot_config.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"
#include "stackshot/stackshot.hpp"

namespace kernel {
namespace {

using namespace kcdata;
using console::print;

constinit StackshotPlan the_plan;

/// Gathers one frame, so that it goes out as one unit of the console.
class FrameSink final : public serial::ByteSink {
  public:
    kern_return write(std::span<const std::byte> bytes) override {
        if (bytes.size() > buffer_.size() - size_)
            return KERN_NO_SPACE;
        std::memcpy(buffer_.data() + size_, bytes.data(), bytes.size());
        size_ += bytes.size();
        return KERN_SUCCESS;
    }
    void send() {
        console::write(std::span(buffer_).first(size_));
        size_ = 0;
    }

  private:
    std::array<std::byte, serial::max_frame_size_on_line> buffer_;
    std::size_t size_ = 0;
};

kern_return send(std::span<const std::byte> data) {
    FrameSink sink;
    serial::Sender sender(data, sink);
    while (!sender.done()) {
        if (const kern_return error = sender.send_next(); error != KERN_SUCCESS)
            return error;
        sink.send();
    }
    return KERN_SUCCESS;
}

void serve(void* argument) {
    const auto& plan = *static_cast<const StackshotPlan*>(argument);
    for (std::uint64_t number = 1; number <= plan.count; number++) {
        sleep_milliseconds(number == 1 ? plan.delay_milliseconds : plan.interval_milliseconds);
        if (const auto error = capture_and_send(plan, number); error != stackshot::BSD_SUCCESS)
            print("stackshot: %lu of %lu: failed: %s\n", number, plan.count,
                  stackshot::bsd_errno_name(error));
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
    plan.config.sc_flags =
        arguments.number("stackshot.flags", STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_LOADINFO |
                                                STACKSHOT_GET_GLOBAL_MEM_STATS);
    if (arguments.flag("stackshot.compress", false))
        plan.config.sc_flags |= STACKSHOT_DO_COMPRESS;
    constexpr std::array<std::string_view, 2> then = {"run", "off"};
    plan.off_then = arguments.choice("stackshot.then", then, 0) == 1;
    return plan;
}

stackshot::bsd_errno capture_and_send(const StackshotPlan& plan, std::uint64_t number) {
    StackshotConfig config(kernel_task());
    if (const stackshot::bsd_errno error = config.capture(plan.config);
        error != stackshot::BSD_SUCCESS)
        return error;
    const auto data = config.buffer();
    const stackshot::Statistics statistics = stackshot_subsystem().last_capture();
    const std::uint64_t send_begin = machine::absolute_time();
    const kern_return sent = send(data);
    console::flush();
    const std::uint64_t send_time = machine::absolute_time() - send_begin;
    print(
        "stackshot: %lu of %lu: %zu bytes, %lu tasks, %lu threads, %lu frames, %u tries, "
        "%d cpus worked, %d absent; prepare %lu us, trap %lu us (interrupts off %lu us), "
        "assemble %lu us, send %lu us\n",
        number, plan.count, data.size(), statistics.tasks, statistics.threads, statistics.frames,
        statistics.tries, __builtin_popcountll(statistics.workers),
        __builtin_popcountll(statistics.absent),
        absolute_time_to_microseconds(statistics.prepare_time),
        absolute_time_to_microseconds(statistics.trap_time),
        absolute_time_to_microseconds(statistics.interrupts_off),
        absolute_time_to_microseconds(statistics.assemble_time),
        absolute_time_to_microseconds(send_time));
    return stackshot::bsd_error(sent);
}

void start_stackshot_service() {
    the_plan = read_stackshot_plan(boot_arguments());
    if (the_plan.count == 0 && !the_plan.off_then)
        return;
    start_kernel_thread("stackshot", serve, &the_plan);
}

}  // namespace kernel
