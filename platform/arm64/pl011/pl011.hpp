#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

    // There is a PL011, from here to the next empty line.
    /// Sends one byte, if the FIFO has room for it; returns whether it had.
    bool try_write(std::byte byte);
    /// Lets the interrupt come once the FIFO, having been fuller, is down to half of it, at once if
    /// that has been. It stays raised until it is masked.
    void unmask_transmit_interrupt();
    void mask_transmit_interrupt();
    /// Whether the transmit interrupt is raised and not masked.
    bool transmit_interrupt_raised() const;
    /// A character of the receive FIFO.
    struct Received {
        std::byte data{};
        // What was wrong with it [DDI 0183 3.3.1].
        bool framing_error = false;
        bool parity_error = false;
        bool break_error = false;  ///< the line was low for longer than a character
    };
    /// The next character received; empty if there is none.
    std::optional<Received> try_read();
    /// Whether characters were lost since the last call, as the FIFO was full.
    bool take_overrun();
    /// Lets the interrupt come while the receive FIFO is half full or holds something that nothing
    /// followed for 32 bits, and when it overruns. Reading until there is nothing ends the former;
    /// but not if the FIFO was emptied otherwise.
    void unmask_receive_interrupts();
    void mask_receive_interrupts();
    /// Takes back an interrupt that an empty FIFO raises. What has come meanwhile is to be read.
    void clear_receive_interrupts();

    /// UARTCLK / 16, the most there is; 0 if the clock is not known.
    std::uint32_t max_baud() const { return clock_ / 16; }
    /// Whether the clock is known and can make `baud`.
    bool supports(std::uint32_t baud) const;
    /// What the line runs at; 0 if the clock or the divisors are not known.
    std::uint32_t baud() const;

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
