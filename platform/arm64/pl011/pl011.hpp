#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace platform {

struct Pl011Registers;

/// A PL011 UART [DDI 0183]. Callers serialize its use.
class Pl011 {
  public:
    constexpr Pl011() = default;
    /// `registers`: mapped as device memory. `clock`: UARTCLK in Hz, 0 if unknown.
    Pl011(std::uint64_t registers, std::uint32_t clock);

    /// 8 data bits, no parity, 1 stop bit, FIFOs on, interrupts masked. `baud` 0, or a clock that
    /// is not known or cannot make it: the divisors stay as the firmware left them. First
    /// waits, a second at most, for what is being sent.
    void initialize(std::uint32_t baud);

    /// Sends everything; waits while the FIFO is full. If it stays full for a second the UART does
    /// not send (there is nobody to tell): from then on what finds no room is dropped at once,
    /// until there is room again.
    void write(std::span<const std::byte> bytes);

    /// Sends one byte, if the FIFO has room for it; returns whether it had. There is a PL011.
    bool try_write(std::byte byte);
    /// Lets the interrupt come once the FIFO, having been fuller, is down to the level of UARTIFLS
    /// (half of it, unless the firmware says otherwise), at once if that has been. It stays raised
    /// until mask_interrupts(). There is a PL011.
    void unmask_transmit_interrupt();
    void mask_interrupts();

    /// Waits until the last bit is on the line; a second at most.
    void flush();

    /// Whether there is one.
    bool present() const { return registers_ != nullptr; }

  private:
    volatile Pl011Registers* registers_ = nullptr;
    std::uint32_t clock_ = 0;
    bool stuck_ = false;
};

/// The board's UART. Boot has initialized it before the kernel's main; not present() if the device
/// tree has none.
Pl011& console_uart();

}  // namespace platform
