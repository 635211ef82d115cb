#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/format_text.hpp"

/// Text and frames on the board's PL011. One call is one unit: nothing another thread prints or
/// sends comes in between, and text never splits a frame.
///
/// Thread context, interrupts on: the caller sleeps while another thread prints, and while the line
/// is behind. Before the PL011's driver is started, when there is one thread only, and in a panic
/// it is sent by polling, in any context.
namespace kernel::console {

/// The line, for as long as this lives: what it sends is one unit.
class Unit {
  public:
    Unit();
    ~Unit();
    Unit(const Unit&) = delete;
    Unit& operator=(const Unit&) = delete;

    /// Sends bytes as they are.
    void send(std::span<const std::byte> bytes) const;
    /// Returns when the last bit is on the line.
    void flush() const;

  private:
    bool polled_;
};

/// Prints text as printf does (see format_text.hpp).
[[gnu::format(printf, 1, 2)]] void print(const char* format, ...);
void print_v(const char* format, std::va_list arguments);

/// A sink that prints each piece that is put into it, as a unit.
class Output final : public TextSink {
  public:
    void put(const char* text, std::size_t length) override;
};

/// Sets the line to a rate its UART supports, once everything printed so far is on it.
void set_baud(std::uint32_t baud);

/// Returns when the last bit is on the line.
void flush();

/// This CPU is alone from now on, and prints without waiting for anyone, behind what others have
/// printed before. Only for panic, and again for one inside it.
void seize();

}  // namespace kernel::console
