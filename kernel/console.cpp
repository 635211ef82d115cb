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

/// The line, for as long as this lives.
class Turn {
  public:
    Turn()
        : polled_(!pl011_driver::started() ||
                  seized_by.load(std::memory_order_relaxed) == machine::current_cpu()) {
        if (!polled_)
            turn.lock();
    }
    ~Turn() {
        if (!polled_)
            turn.unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    void send(std::span<const std::byte> bytes) const {
        if (polled_)
            platform::console_uart().write(bytes);
        else
            pl011_driver::send(bytes);
    }
    void flush() const {
        if (!polled_)
            pl011_driver::drain();
        platform::console_uart().flush();
    }

  private:
    bool polled_;
};

class LineSink final : public TextSink {
  public:
    explicit LineSink(const Turn& mine) : turn_(mine) {}
    void put(const char* text, std::size_t length) override {
        // A terminal wants CR LF.
        std::string_view rest(text, length);
        for (std::size_t at; (at = rest.find('\n')) != rest.npos; rest.remove_prefix(at + 1)) {
            turn_.send(std::as_bytes(std::span(rest.substr(0, at))));
            turn_.send(std::as_bytes(std::span("\r\n", 2)));
        }
        turn_.send(std::as_bytes(std::span(rest)));
    }

  private:
    const Turn& turn_;
};

}  // namespace

void print(const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    print_v(format, arguments);
    va_end(arguments);
}

void print_v(const char* format, std::va_list arguments) {
    const Turn mine;
    LineSink sink(mine);
    format_text(sink, format, arguments);
}

void write(std::span<const std::byte> bytes) {
    const Turn mine;
    mine.send(bytes);
}

void flush() {
    const Turn mine;
    mine.flush();
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
