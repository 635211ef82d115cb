#include "boot/report.hpp"

#include <span>
#include <string_view>

#include "platform/arm64/cpu/identity.hpp"
#include "platform/arm64/image.hpp"
#include "platform/arm64/pl011/pl011.hpp"
#include "platform/arm64/psci/psci.hpp"

namespace boot {

using namespace platform;

namespace {

/// The few kinds of text boot needs; the kernel's console comes later.
struct Text {
    Text& operator<<(std::string_view text) {
        console_uart().write(std::as_bytes(std::span(text)));
        return *this;
    }
    Text& operator<<(std::uint64_t number) { return digits(number, 10); }
    Text& hex(std::uint64_t number) { return (*this << "0x").digits(number, 16); }

  private:
    Text& digits(std::uint64_t number, std::uint64_t base) {
        char buffer[20];
        char* const end = buffer + sizeof(buffer);
        char* p = end;
        do
            *--p = "0123456789abcdef"[number % base];
        while ((number /= base) != 0);
        return *this << std::string_view(p, static_cast<std::size_t>(end - p));
    }
};

}  // namespace

void report_board(const Board& board, std::uint64_t entry_el) {
    std::uint64_t bytes = 0;
    for (const MemoryRange& range : board.memory)
        bytes += range.size;

    Text text;
    text << "boot: " << board.model << ", " << (bytes >> 20) << " MiB, " << board.cpus.size()
         << (board.cpus.size() == 1 ? " CPU" : " CPUs");
    if (board.cpus_left_out != 0)
        text << " (" << std::uint64_t{board.cpus_left_out} << " more not used)";
    text << ", GICv" << std::uint64_t{board.gic.version};
    if (board.psci_conduit == Conduit::none) {
        text << ", no PSCI\r\n";
    } else {
        const std::int32_t answer = psci::version();
        const auto version = static_cast<std::uint32_t>(answer);
        text << ", PSCI ";
        if (answer < 0)
            text << "of unknown version (" << psci::name(static_cast<psci::Status>(answer)) << ")";
        else
            text << std::uint64_t{version >> 16} << "." << std::uint64_t{version & 0xffff};
        text << " by " << (board.psci_conduit == Conduit::hvc ? "hvc" : "smc") << "\r\n";
    }
    (text << "boot: entered at EL" << entry_el << " on CPU ").hex(cpu::current_mpidr().value());
    (text << ", image at ").hex(image::load_address().value());
    text << ", " << (image::size() >> 10) << " KiB\r\n";
}

void report_failure(const char* what, const char* which, const char* where) {
    Text text;
    text << "boot: cannot go on: " << what;
    for (const std::string_view more : {which, where})
        if (!more.empty())
            text << ": " << more;
    text << "\r\n";
}

}  // namespace boot
