#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/arm64/exception/frame.hpp"
#include "platform/arm64/mmu/layout.hpp"

/// The load instruction `load`, which may fault, for the template of an asm goto, and its entry in
/// the table fix_up_checked_read() searches: two offsets, each from its own place, of the load and
/// of where control goes if it faults. Both arguments are strings.
#define CHECKED_LOAD(faulted, load)                      \
    "700: " load                                         \
    "\n\t"                                               \
    ".pushsection .checked_reads, \"a\", %%progbits\n\t" \
    ".balign 4\n\t"                                      \
    ".word 700b - .\n\t"                                 \
    ".word " faulted                                     \
    " - .\n\t"                                           \
    ".popsection"

/// Reads through addresses that may be anything. Nothing is looked up beforehand: the load is done,
/// and one that faults ends in a false instead of a panic. Devices alone are told by their address,
/// as a read of a register can do something to the device. Any context.
namespace platform::mmu {

/// Whether [address, address + size) does not wrap around, and no byte of it is a device's.
inline bool holds_no_device(std::uint64_t address, std::uint64_t size) {
    const std::uint64_t end = address + size;
    return end >= address && (end <= device_base || address >= device_end);
}

/// The copy itself, in assembly.
extern "C" bool checked_copy_words(std::uint64_t from, void* to, std::size_t words);

/// Copies the `words` words at `address` (8-byte aligned) to `to`; false if that cannot be done.
/// Some of them may then have been copied.
[[nodiscard]] inline bool checked_copy(std::uint64_t address, void* to, std::size_t words) {
    // Not left to the MMU: an aligned word cannot be half readable.
    return address % sizeof(std::uint64_t) == 0 &&
           holds_no_device(address, words * sizeof(std::uint64_t)) &&
           checked_copy_words(address, to, words);
}

/// Reads the word at `address` (8-byte aligned).
[[nodiscard]] inline bool checked_read(std::uint64_t address, std::uint64_t& value) {
    return checked_copy(address, &value, 1);
}

/// Reads the two words at `address`, for a loop that has checked that it is 8-byte aligned and
/// holds_no_device().
[[gnu::always_inline, nodiscard]] inline bool checked_load_pair(std::uint64_t address,
                                                                std::uint64_t& first,
                                                                std::uint64_t& second) {
    std::uint64_t one;
    std::uint64_t other;
    asm goto(CHECKED_LOAD("%l[faulted]", "ldp %0, %1, [%2]")
             : "=&r"(one), "=&r"(other)
             : "r"(address)
             : "memory"
             : faulted);
    first = one;
    second = other;
    return true;
faulted:
    return false;
}

/// If `frame` is a data abort of one of these loads, makes it go on as a failed one, and says so.
bool fix_up_checked_read(ExceptionFrame& frame);

/// Whether the table of the loads is there and names code only; the image's link can break it.
bool checked_read_intact();

}  // namespace platform::mmu
