#include "kernel/pl011_driver.hpp"

#include <atomic>
#include <cstdint>

#include "kernel/absolute_time.hpp"
#include "kernel/byte_queue.hpp"
#include "kernel/event.hpp"
#include "kernel/sleep.hpp"
#include "kernel/spinlock.hpp"
#include "kernel/thread.hpp"
#include "platform/arm64/gic/interrupt_controller.hpp"
#include "platform/arm64/pl011/pl011.hpp"

namespace kernel::pl011_driver {
namespace {

/// So many bytes at a time make room in the queue for those who wait for it.
constexpr std::size_t burst_size = 1024;
/// An interrupt that is later than this is not waited for.
constexpr std::uint64_t interrupt_milliseconds = 100;
/// A FIFO that takes nothing for so long belongs to a line that does not send.
constexpr std::uint64_t stuck_milliseconds = 1000;
/// On a line that never makes it wait, as an emulator's, the thread would take a whole CPU: after
/// so much time of its own it leaves some to others.
constexpr std::uint64_t busy_milliseconds = 10;
constexpr std::uint64_t pause_milliseconds = 5;

constinit ByteQueue<8192> queue;
constinit Event filled;   ///< bytes were put into the queue
constinit Event emptied;  ///< bytes were taken out of the queue
constinit Event room;     ///< the FIFO can take more
std::atomic<bool> running{false};
constinit platform::Intid transmit_interrupt{};

void wait_for_room(platform::Pl011& port) {
    if (transmit_interrupt.is_special())
        return sleep_milliseconds(1);
    room.clear();
    port.unmask_transmit_interrupt();
    [[maybe_unused]] const WaitResult result = room.wait_until(
        machine::absolute_time() + milliseconds_to_absolute_time(interrupt_milliseconds));
}

void run(void*) {
    platform::Pl011& port = platform::console_uart();
    std::uint64_t busy = 0;
    for (;;) {
        filled.wait();
        filled.clear();
        std::uint64_t last_taken = machine::absolute_time();
        while (!queue.empty()) {
            const std::uint64_t begin = machine::absolute_time();
            // There is nobody to tell of a line that does not send: what finds no room is dropped.
            const bool stuck =
                begin - last_taken > milliseconds_to_absolute_time(stuck_milliseconds);
            bool full = false;
            std::byte next;
            for (std::size_t count = 0; count < burst_size && queue.peek(next); count++) {
                full = !port.try_write(next);
                if (full && !stuck)
                    break;
                if (!full)
                    last_taken = begin;
                queue.pop();
            }
            emptied.set();
            busy += machine::absolute_time() - begin;
            const bool pause = busy > milliseconds_to_absolute_time(busy_milliseconds);
            if ((full && !stuck) || pause)
                wait_for_room(port);
            if (pause) {
                sleep_milliseconds(pause_milliseconds);
                busy = 0;
            }
        }
    }
}

}  // namespace

void start(const platform::Board& board) {
    if (!platform::console_uart().present())
        return;
    if (!board.uart.interrupt.is_special()) {
        const InterruptsOff interrupts_off;
        transmit_interrupt = board.uart.interrupt;
        if (platform::interrupt_controller().enable(transmit_interrupt) != platform::GicStatus::ok)
            transmit_interrupt = {};
    }
    start_kernel_thread("pl011", run, nullptr);
    // Release: transmit_interrupt.
    running.store(true, std::memory_order_release);
}

bool started() {
    return running.load(std::memory_order_acquire);
}

void send(std::span<const std::byte> bytes) {
    for (;;) {
        emptied.clear();
        bytes = bytes.subspan(queue.put(bytes));
        filled.set();
        if (bytes.empty())
            return;
        emptied.wait();
    }
}

void drain() {
    while (!queue.empty())
        sleep_milliseconds(1);
}

void take_over() {
    std::byte next;
    while (queue.peek(next)) {
        platform::console_uart().write(std::span(&next, 1));
        queue.pop();
    }
}

platform::Intid interrupt() {
    return transmit_interrupt;
}

void handle_interrupt() {
    platform::console_uart().mask_interrupts();
    room.set();
}

}  // namespace kernel::pl011_driver
