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
/// An interrupt takes so many bytes at most, some FIFOs full.
constexpr std::size_t receive_burst = 64;

constinit ByteQueue<8192> queue;
constinit Event filled;   ///< bytes were put into the queue
constinit Event emptied;  ///< bytes were taken out of the queue
constinit Event room;     ///< the FIFO can take more
std::atomic<bool> running{false};
constinit platform::Intid the_interrupt{};
/// What the line was set to; 0: only the UART knows.
std::atomic<std::uint32_t> told_baud{0};

/// Guards the interrupt masks and who puts into `received`.
constinit SpinLock lock;
constinit ByteQueue<8192> received;
constinit Event arrived;        ///< bytes were put into `received`
constinit bool masked = false;  ///< `received` was full: reception stays masked until there is room

/// ReceiveStatistics, counted with the lock held.
struct {
    std::atomic<std::uint64_t> bytes{0}, overruns{0}, framing_errors{0}, parity_errors{0},
        breaks{0}, held_back{0};
} counted;

void count(std::atomic<std::uint64_t>& counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
}

/// Takes characters out of the FIFO, until it is empty, `received` is full or it was enough for
/// once. With the lock held.
void take_received(platform::Pl011& port) {
    if (port.take_overrun())
        count(counted.overruns);
    bool cleared = false;
    for (std::size_t taken = 0; taken < receive_burst; taken++) {
        if (received.full()) {
            if (!masked)
                count(counted.held_back);
            masked = true;
            port.mask_receive_interrupts();
            return;
        }
        const auto character = port.try_read();
        if (!character) {
            // A FIFO that set_baud() emptied does not end its interrupt by being read. What comes
            // before it is cleared raises no other.
            if (cleared)
                return;
            port.clear_receive_interrupts();
            cleared = true;
            continue;
        }
        if (character->break_error)
            count(counted.breaks);
        else if (character->framing_error)
            count(counted.framing_errors);
        else if (character->parity_error)
            count(counted.parity_errors);
        else
            counted.bytes.fetch_add(received.put(std::span(&character->data, 1)),
                                    std::memory_order_relaxed);
    }
}

void wait_for_room(platform::Pl011& port) {
    if (the_interrupt.is_special())
        return sleep_milliseconds(1);
    room.clear();
    {
        const SpinLockGuard guard(lock);
        port.unmask_transmit_interrupt();
    }
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
    told_baud.store(board.uart.baud, std::memory_order_relaxed);
    if (!board.uart.interrupt.is_special()) {
        const InterruptsOff interrupts_off;
        the_interrupt = board.uart.interrupt;
        if (platform::interrupt_controller().enable(the_interrupt) != platform::GicStatus::ok)
            the_interrupt = {};
        else
            platform::console_uart().unmask_receive_interrupts();
    }
    start_kernel_thread("pl011", run, nullptr);
    // Release: the_interrupt.
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

std::size_t receive(std::span<std::byte> into, std::uint64_t deadline) {
    platform::Pl011& port = platform::console_uart();
    for (;;) {
        arrived.clear();
        {
            // Whether or not there is an interrupt: one that comes while the FIFO is not empty may
            // have been cleared, and it is the only one until the FIFO is.
            const SpinLockGuard guard(lock);
            take_received(port);
        }
        const std::size_t taken = received.take(into);
        {
            const SpinLockGuard guard(lock);
            if (masked && received.size() <= received.capacity / 2) {
                masked = false;
                if (!the_interrupt.is_special())
                    port.unmask_receive_interrupts();
            }
        }
        if (taken != 0 || machine::absolute_time() >= deadline)
            return taken;
        if (the_interrupt.is_special()) {
            sleep_milliseconds(1);
        } else {
            // Whether in time or not: what there is, is taken.
            [[maybe_unused]] const WaitResult result = arrived.wait_until(deadline);
        }
    }
}

ReceiveStatistics receive_statistics() {
    const auto read = [](const std::atomic<std::uint64_t>& counter) {
        return counter.load(std::memory_order_relaxed);
    };
    return {.bytes = read(counted.bytes),
            .overruns = read(counted.overruns),
            .framing_errors = read(counted.framing_errors),
            .parity_errors = read(counted.parity_errors),
            .breaks = read(counted.breaks),
            .held_back = read(counted.held_back)};
}

bool supports_baud(std::uint32_t baud) {
    return platform::console_uart().supports(baud);
}

std::uint32_t max_baud() {
    return platform::console_uart().max_baud();
}

std::uint32_t baud() {
    const std::uint32_t told = told_baud.load(std::memory_order_relaxed);
    return told != 0 ? told : platform::console_uart().baud();
}

void set_baud(std::uint32_t baud) {
    platform::Pl011& port = platform::console_uart();
    drain();
    port.flush();
    const SpinLockGuard guard(lock);
    port.initialize(baud);
    told_baud.store(baud, std::memory_order_relaxed);
    if (!the_interrupt.is_special() && !masked)
        port.unmask_receive_interrupts();
}

void take_over() {
    std::byte next;
    while (queue.peek(next)) {
        platform::console_uart().write(std::span(&next, 1));
        queue.pop();
    }
}

platform::Intid interrupt() {
    return the_interrupt;
}

void handle_interrupt() {
    platform::Pl011& port = platform::console_uart();
    bool transmit = false;
    {
        const SpinLockGuard guard(lock);
        transmit = port.transmit_interrupt_raised();
        if (transmit)
            port.mask_transmit_interrupt();
        take_received(port);
    }
    if (transmit)
        room.set();
    if (!received.empty())
        arrived.set();
}

}  // namespace kernel::pl011_driver
