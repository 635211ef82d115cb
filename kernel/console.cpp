#include "kernel/console.hpp"

#include <atomic>
#include <span>
#include <string_view>

#include "kernel/format_text.hpp"
#include "kernel/machine.hpp"
#include "kernel/mutex.hpp"
#include "kernel/pl011_driver.hpp"
#include "platform/arm64/pl011/pl011.hpp"

namespace kernel::console {
namespace {

std::atomic<CpuIndex> seized_by{no_cpu};
constinit Mutex turn;

class LineSink final : public TextSink {
  public:
    explicit LineSink(const Unit& unit) : unit_(unit) {}
    void put(const char* text, std::size_t length) override {
        // A terminal wants CR LF.
        std::string_view rest(text, length);
        for (std::size_t at; (at = rest.find('\n')) != rest.npos; rest.remove_prefix(at + 1)) {
            unit_.send(std::as_bytes(std::span(rest.substr(0, at))));
            unit_.send(std::as_bytes(std::span("\r\n", 2)));
        }
        unit_.send(std::as_bytes(std::span(rest)));
    }

  private:
    const Unit& unit_;
};

}  // namespace

Unit::Unit()
    : polled_(!pl011_driver::started() ||
              seized_by.load(std::memory_order_relaxed) == machine::current_cpu()) {
    if (!polled_)
        turn.lock();
}

Unit::~Unit() {
    if (!polled_)
        turn.unlock();
}

void Unit::send(std::span<const std::byte> bytes) const {
    if (polled_)
        platform::console_uart().write(bytes);
    else
        pl011_driver::send(bytes);
}

void Unit::flush() const {
    if (!polled_)
        pl011_driver::drain();
    platform::console_uart().flush();
}

void print(const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    print_v(format, arguments);
    va_end(arguments);
}

void print_v(const char* format, std::va_list arguments) {
    const Unit unit;
    LineSink sink(unit);
    format_text(sink, format, arguments);
}

void Output::put(const char* text, std::size_t length) {
    const Unit unit;
    LineSink(unit).put(text, length);
}

void set_baud(std::uint32_t baud) {
    const Unit unit;
    pl011_driver::set_baud(baud);
}

void flush() {
    const Unit unit;
    unit.flush();
}

void seize() {
    const CpuIndex self = machine::current_cpu();
    const bool again = seized_by.exchange(self, std::memory_order_relaxed) == self;
    pl011_driver::take_over();
    // A frame that was cut off ends here, and takes no text along.
    constexpr std::byte delimiter[1] = {};
    if (again || turn.owner() != nullptr)
        platform::console_uart().write(delimiter);
}

}  // namespace kernel::console
