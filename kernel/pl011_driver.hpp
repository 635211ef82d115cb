#pragma once

#include <cstddef>
#include <span>

#include "platform/arm64/devicetree/board.hpp"

/// The thread "pl011" of kernel_task: it owns the sending over the board's PL011 from its start on
/// until a panic. It sleeps while the FIFO drains, until the transmit interrupt, or for a
/// millisecond at a time where the device tree names no interrupt.
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

/// The caller, who panics and is alone from now on, sends what was handed over.
void take_over();

/// The interrupt the thread waits for; a special one if it waits for none.
platform::Intid interrupt();
/// The handler of interrupt().
void handle_interrupt();

}  // namespace kernel::pl011_driver
