#include "platform/arm64/pl011/pl011.hpp"

#include "platform/arm64/pl011/pl011_registers.hpp"
#include "platform/arm64/timer/wait_until.hpp"

namespace platform {

namespace {
constinit Pl011 uart;
}  // namespace

Pl011& console_uart() {
    return uart;
}

Pl011::Pl011(std::uint64_t registers, std::uint32_t clock)
    : registers_(reinterpret_cast<volatile Pl011Registers*>(registers)), clock_(clock) {}

void Pl011::initialize(std::uint32_t baud) {
    if (!present())
        return;
    const std::optional<BaudDivisor> divisor = baud_divisor(clock_, baud);
    const std::uint32_t ibrd = divisor ? divisor->integer : registers_->UARTIBRD;
    const std::uint32_t fbrd = divisor ? divisor->fraction : registers_->UARTFBRD;

    // The order of DDI 0183 3.3.8: nothing changes while the UART is on, and disabling it in the
    // middle of a character loses that one.
    flush();
    registers_->UARTCR = 0;
    registers_->UARTIMSC = 0;
    registers_->UARTICR = UARTICR::all;
    registers_->UARTDMACR = 0;
    registers_->UARTIBRD = ibrd;
    registers_->UARTFBRD = fbrd;
    registers_->UARTIFLS = UARTIFLS::TXIFLSEL_1_2 | UARTIFLS::RXIFLSEL_1_2;
    // Written last: it latches the divisors.
    registers_->UARTLCR_H = UARTLCR_H::WLEN_8 | UARTLCR_H::FEN;
    registers_->UARTCR = UARTCR::UARTEN | UARTCR::TXE | UARTCR::RXE;
}

void Pl011::write(std::span<const std::byte> bytes) {
    if (!present())
        return;
    const auto room = [this] { return (registers_->UARTFR & UARTFR::TXFF) == 0; };
    for (const std::byte b : bytes) {
        if (!room()) {
            stuck_ = stuck_ || !timer::wait_until(room);
            if (stuck_)
                continue;
        }
        stuck_ = false;
        registers_->UARTDR = static_cast<std::uint32_t>(b);
    }
}

bool Pl011::try_write(std::byte byte) {
    if ((registers_->UARTFR & UARTFR::TXFF) != 0)
        return false;
    registers_->UARTDR = static_cast<std::uint32_t>(byte);
    return true;
}

void Pl011::unmask_transmit_interrupt() {
    registers_->UARTIMSC = registers_->UARTIMSC | UARTIMSC::TXIM;
}

void Pl011::mask_transmit_interrupt() {
    registers_->UARTIMSC = registers_->UARTIMSC & ~UARTIMSC::TXIM;
}

bool Pl011::transmit_interrupt_raised() const {
    return (registers_->UARTMIS & UARTIMSC::TXIM) != 0;
}

std::optional<Pl011::Received> Pl011::try_read() {
    if ((registers_->UARTFR & UARTFR::RXFE) != 0)
        return {};
    const std::uint32_t data = registers_->UARTDR;
    return Received{
        .data = static_cast<std::byte>(data & UARTDR::DATA),
        .framing_error = (data & UARTDR::FE) != 0,
        .parity_error = (data & UARTDR::PE) != 0,
        .break_error = (data & UARTDR::BE) != 0,
    };
}

bool Pl011::take_overrun() {
    if ((registers_->UARTRIS & UARTIMSC::OEIM) == 0)
        return false;
    registers_->UARTICR = UARTICR::OEIC;
    return true;
}

void Pl011::unmask_receive_interrupts() {
    registers_->UARTIMSC = registers_->UARTIMSC | UARTIMSC::receive;
}

void Pl011::mask_receive_interrupts() {
    registers_->UARTIMSC = registers_->UARTIMSC & ~UARTIMSC::receive;
}

void Pl011::clear_receive_interrupts() {
    registers_->UARTICR = UARTICR::RXIC | UARTICR::RTIC;
}

bool Pl011::supports(std::uint32_t baud) const {
    return baud_divisor(clock_, baud).has_value();
}

std::uint32_t Pl011::baud() const {
    return present() ? baud_of(clock_, {registers_->UARTIBRD, registers_->UARTFBRD}) : 0;
}

void Pl011::flush() {
    if (present())
        (void)timer::wait_until([this] { return (registers_->UARTFR & UARTFR::BUSY) == 0; });
}

}  // namespace platform
