#include "kernel/command_service.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "kcdata/serial/crc32c.hpp"
#include "kcdata/serial/target.hpp"
#include "kernel/absolute_time.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/command_executor.hpp"
#include "kernel/console_commands.hpp"
#include "kernel/frame_sink.hpp"
#include "kernel/heap.hpp"
#include "kernel/panic.hpp"
#include "kernel/pl011_driver.hpp"
#include "kernel/sleep.hpp"
#include "kernel/thread.hpp"

namespace kernel {
namespace {

using namespace kcdata::serial;

/// After so much time of its own without a pause the thread leaves some to others: a line that
/// floods it, or never makes it wait, must not take a whole CPU.
constexpr std::uint64_t busy_milliseconds = 10;
constexpr std::uint64_t pause_milliseconds = 5;

std::uint64_t microseconds() {
    return absolute_time_to_microseconds(machine::absolute_time());
}

/// What a line is taken to run at if neither device tree nor UART say.
constexpr std::uint32_t usual_baud = 115'200;

/// Something else at each start, as far as there is anything to tell them apart by.
std::uint32_t draw_boot() {
    const std::array<std::uint64_t, 2> origin = {machine::absolute_time(),
                                                 boot_arguments().number("epoch", 0)};
    return kcdata::serial::crc32c(std::as_bytes(std::span(origin)));
}

class Commands final : public CommandExecutor {
  public:
    void text(std::span<const std::byte> bytes) override { console_.type(bytes); }

  private:
    ConsoleCommands console_{*this};
};

/// All that the thread works with; too large for its stack.
struct Service {
    Commands commands{};
    FrameSink sink{};
    Target target{commands,
                  sink,
                  {.boot = draw_boot(),
                   .baud_rate = pl011_driver::baud() != 0 ? pl011_driver::baud() : usual_baud,
                   .max_baud_rate = pl011_driver::max_baud()}};
    std::array<std::byte, 512> received{};

    std::uint64_t deadline() const;
    void run();
};

/// When the thread has something to do at the latest, in absolute time.
std::uint64_t Service::deadline() const {
    if (target.owes())
        return 0;
    const auto due = target.deadline();
    return due ? nanoseconds_to_absolute_time(*due * 1000) : no_deadline;
}

void Service::run() {
    std::uint64_t busy = 0;
    for (;;) {
        const std::uint64_t before = machine::absolute_time();
        const std::size_t size = pl011_driver::receive(received, deadline());
        const std::uint64_t begin = machine::absolute_time();
        if (begin - before > milliseconds_to_absolute_time(pause_milliseconds))
            busy = 0;
        target.receive(std::span(received).first(size), microseconds());
        // The line has no errors of its own: a frame that does not arrive is asked for again.
        if (target.owes())
            (void)target.send_next();
        target.tick(microseconds());

        busy += machine::absolute_time() - begin;
        if (busy > milliseconds_to_absolute_time(busy_milliseconds)) {
            sleep_milliseconds(pause_milliseconds);
            busy = 0;
        }
    }
}

void serve(void* service) {
    static_cast<Service*>(service)->run();
}

}  // namespace

void start_command_service() {
    if (!pl011_driver::started())
        return;
    auto* const service = heap::create<Service>();
    if (service == nullptr)
        panic("no memory for the command service");
    start_kernel_thread("command", serve, service);
}

}  // namespace kernel
