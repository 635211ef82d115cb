#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "platform/arm64/devicetree/board.hpp"

/// The driver of the board's PL011, which it owns from its start on until a panic.
///
/// Sending is done by the thread "pl011" of kernel_task. It sleeps while the FIFO drains, until the
/// transmit interrupt, or for a millisecond at a time where the device tree names no interrupt.
///
/// Receiving is done by the interrupt handler, a bounded number of bytes at a time, into a queue;
/// while that is full the interrupt stays masked, so that whatever comes over the line takes no
/// more of the machine than who reads it. Without an interrupt it is the reader who looks, every
/// millisecond.
namespace kernel::pl011_driver {

/// Starts the thread, if there is a PL011. Once, thread context.
void start(const platform::Board& board);
/// Whether send() is the way to send.
bool started();

/// Hands over bytes to send; waits while the queue is full. Thread context, interrupts on; one
/// thread at a time.
void send(std::span<const std::byte> bytes);
/// Waits until everything handed over has reached the FIFO. As send().
void drain();

/// Takes bytes that were received, as many as there are and `into` has room for; waits until
/// `deadline` (absolute time) for the first one. Returns how many; 0: none came. Characters that
/// arrived with an error are left out. Thread context, interrupts on; one thread at a time.
std::size_t receive(std::span<std::byte> into, std::uint64_t deadline);

/// What was received since the start.
struct ReceiveStatistics {
    std::uint64_t bytes = 0;
    std::uint64_t overruns = 0;  ///< how often the FIFO was full when one more came
    std::uint64_t framing_errors = 0;
    std::uint64_t parity_errors = 0;
    std::uint64_t breaks = 0;
    std::uint64_t held_back = 0;  ///< how often the queue was full
};
/// Any context.
ReceiveStatistics receive_statistics();

/// Whether the line can be set to `baud`.
bool supports_baud(std::uint32_t baud);
/// The highest rate it can be set to; 0 if the UART's clock is not known.
std::uint32_t max_baud();
/// What the line runs at; 0 if that is not known.
std::uint32_t baud();
/// Sets the line to `baud`, which it supports, once everything handed over is on the line. What is
/// just being received is lost. As send().
void set_baud(std::uint32_t baud);

/// The caller, who panics and is alone from now on, sends what was handed over.
void take_over();

/// The interrupt of the PL011; a special one if there is none.
platform::Intid interrupt();
/// The handler of interrupt().
void handle_interrupt();

}  // namespace kernel::pl011_driver
