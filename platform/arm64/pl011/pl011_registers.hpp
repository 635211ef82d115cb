#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

// PL011 registers [DDI 0183 3.3].
namespace platform {

struct Pl011Registers {
    std::uint32_t UARTDR;
    std::uint32_t UARTRSR;
    std::uint32_t reserved_008[4];
    std::uint32_t UARTFR;
    std::uint32_t reserved_01c;
    std::uint32_t UARTILPR;
    std::uint32_t UARTIBRD;
    std::uint32_t UARTFBRD;
    std::uint32_t UARTLCR_H;
    std::uint32_t UARTCR;
    std::uint32_t UARTIFLS;
    std::uint32_t UARTIMSC;
    std::uint32_t UARTRIS;
    std::uint32_t UARTMIS;
    std::uint32_t UARTICR;
    std::uint32_t UARTDMACR;
};
static_assert(offsetof(Pl011Registers, UARTFR) == 0x018);
static_assert(offsetof(Pl011Registers, UARTILPR) == 0x020);
static_assert(offsetof(Pl011Registers, UARTDMACR) == 0x048);

namespace UARTDR {
inline constexpr std::uint32_t DATA = 0xff;
inline constexpr std::uint32_t FE = 1u << 8;
inline constexpr std::uint32_t PE = 1u << 9;
inline constexpr std::uint32_t BE = 1u << 10;
}  // namespace UARTDR

namespace UARTFR {
inline constexpr std::uint32_t BUSY = 1u << 3;
inline constexpr std::uint32_t RXFE = 1u << 4;
inline constexpr std::uint32_t TXFF = 1u << 5;
}  // namespace UARTFR

namespace UARTLCR_H {
inline constexpr std::uint32_t FEN = 1u << 4;
inline constexpr std::uint32_t WLEN_8 = 0b11u << 5;
}  // namespace UARTLCR_H

namespace UARTCR {
inline constexpr std::uint32_t UARTEN = 1u << 0;
inline constexpr std::uint32_t TXE = 1u << 8;
inline constexpr std::uint32_t RXE = 1u << 9;
}  // namespace UARTCR

namespace UARTIFLS {
// Half of the FIFO, either way.
inline constexpr std::uint32_t TXIFLSEL_1_2 = 0b010u << 0;
inline constexpr std::uint32_t RXIFLSEL_1_2 = 0b010u << 3;
}  // namespace UARTIFLS

// The same bits in UARTIMSC, UARTRIS, UARTMIS and UARTICR.
namespace UARTIMSC {
inline constexpr std::uint32_t RXIM = 1u << 4;
inline constexpr std::uint32_t TXIM = 1u << 5;
inline constexpr std::uint32_t RTIM = 1u << 6;
inline constexpr std::uint32_t OEIM = 1u << 10;
inline constexpr std::uint32_t receive = RXIM | RTIM | OEIM;
}  // namespace UARTIMSC

namespace UARTICR {
inline constexpr std::uint32_t RXIC = 1u << 4;
inline constexpr std::uint32_t RTIC = 1u << 6;
inline constexpr std::uint32_t OEIC = 1u << 10;
inline constexpr std::uint32_t all = 0x7ff;
}  // namespace UARTICR

/// The baud rate divisor [DDI 0183 3.3.6].
struct BaudDivisor {
    std::uint32_t integer;   // UARTIBRD, 1 to 65535
    std::uint32_t fraction;  // UARTFBRD, in 64ths

    constexpr bool operator==(const BaudDivisor&) const = default;
};

/// UARTCLK / (16 * baud) to the nearest 64th; empty if it cannot be set.
constexpr std::optional<BaudDivisor> baud_divisor(std::uint32_t clock, std::uint32_t baud) {
    if (baud == 0)
        return {};
    const std::uint64_t in_64ths = (std::uint64_t{clock} * 8 / baud + 1) / 2;
    // The largest divisor is 65535 with fraction 0.
    if (in_64ths < 64 || in_64ths > 65535 * 64)
        return {};
    return BaudDivisor{static_cast<std::uint32_t>(in_64ths / 64),
                       static_cast<std::uint32_t>(in_64ths % 64)};
}

/// What a divisor makes of UARTCLK, to the nearest baud; 0 if it divides by nothing.
constexpr std::uint32_t baud_of(std::uint32_t clock, BaudDivisor divisor) {
    const std::uint64_t in_64ths = std::uint64_t{divisor.integer} * 64 + divisor.fraction;
    if (in_64ths == 0)
        return 0;
    return static_cast<std::uint32_t>((std::uint64_t{clock} * 4 + in_64ths / 2) / in_64ths);
}

}  // namespace platform
