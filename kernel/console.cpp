#include "kernel/console.hpp"

#include <atomic>
#include <span>
#include <string_view>

#include "kernel/cpu.hpp"
#include "kernel/format_text.hpp"
#include "kernel/machine.hpp"
#include "kernel/quiesce.hpp"
#include "kernel/sleep.hpp"
#include "platform/arm64/pl011/pl011.hpp"

namespace kernel::console {
namespace {

std::atomic<bool> busy{false};
std::atomic<CpuIndex> seized_by{no_cpu};

/// Whether the caller is a thread that may block.
bool may_sleep() {
    if (!machine::interrupts_enabled())
        return false;
    const bool enabled = machine::interrupts_disable();
    const bool scheduled = this_cpu().current != nullptr;
    machine::interrupts_restore(enabled);
    return scheduled;
}

/// The line, for as long as this lives. Not a SpinLock: a line at 115200 baud takes milliseconds,
/// and a CPU with interrupts off for so long does not answer a stop.
class Turn {
  public:
    Turn() {
        if (seized_by.load(std::memory_order_relaxed) == machine::current_cpu())
            return;
        const std::uint64_t start = machine::absolute_time();
        // Acquire: the state of the port the last one left.
        while (busy.exchange(true, std::memory_order_acquire)) {
            if (may_sleep()) {
                sleep_milliseconds(1);
            } else {
                quiesce().park_if_panicking();
                if (machine::absolute_time() - start > machine::ticks_per_second())
                    return;
                machine::wait_for_event();
            }
        }
        mine_ = true;
    }
    ~Turn() {
        if (!mine_)
            return;
        busy.store(false, std::memory_order_release);
        machine::send_event();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

  private:
    bool mine_ = false;
};

void write_to_port(std::span<const std::byte> bytes) {
    platform::Pl011& port = platform::console_uart();
    if (port.present())
        port.write(bytes);
}

class PortSink final : public TextSink {
  public:
    void put(const char* text, std::size_t length) override {
        // A terminal wants CR LF.
        std::string_view rest(text, length);
        for (std::size_t at; (at = rest.find('\n')) != rest.npos; rest.remove_prefix(at + 1)) {
            write_to_port(std::as_bytes(std::span(rest.substr(0, at))));
            write_to_port(std::as_bytes(std::span("\r\n", 2)));
        }
        write_to_port(std::as_bytes(std::span(rest)));
    }
};

}  // namespace

void print(const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    print_v(format, arguments);
    va_end(arguments);
}

void print_v(const char* format, std::va_list arguments) {
    const Turn turn;
    PortSink sink;
    format_text(sink, format, arguments);
}

void write(std::span<const std::byte> bytes) {
    const Turn turn;
    write_to_port(bytes);
}

void flush() {
    const Turn turn;
    platform::Pl011& port = platform::console_uart();
    if (port.present())
        port.flush();
}

void seize() {
    seized_by.store(machine::current_cpu(), std::memory_order_relaxed);
}

}  // namespace kernel::console
