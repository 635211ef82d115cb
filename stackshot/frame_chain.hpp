#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stackshot {

/// Why a stack walk ended.
enum class WalkEnd : std::uint8_t {
    end_of_stack,        ///< a frame pointer or return address of 0: the walk is complete
    too_deep,            ///< no room for more entries
    misaligned,          ///< a frame pointer that is not 8-byte aligned
    outside_stack,       ///< a frame record outside of the thread's stacks
    not_upward,          ///< a frame record not above the one before
    unreadable,          ///< a frame record that could not be read
    exception_frame,     ///< the registers an exception interrupted could not be had
    unwind_information,  ///< call frame information that is corrupt or beyond what is evaluated
};

/// Addresses of a stack, [low, high).
struct StackRange {
    std::uint64_t low = 0, high = 0;

    /// Whether `size` bytes at `address` lie inside.
    bool contains(std::uint64_t address, std::uint64_t size) const {
        return address >= low && address <= high && size <= high - address;
    }
};

/// A chain of AAPCS64 frame records {caller's x29, return address}, and how far it was followed.
struct FrameChain {
    StackRange stack{};
    std::uint64_t fp = 0;     ///< the next record
    std::uint64_t floor = 0;  ///< no record lies below
    /// The exception entry code: a return address in (entry_low, entry_high] does not go on by its
    /// record.
    std::uint64_t entry_low = 0, entry_high = 0;

    bool is_exception_entry(std::uint64_t return_address) const {
        return return_address - entry_low - 1 < entry_high - entry_low;
    }
};

/// Return addresses found in a chain of frame records.
struct Followed {
    std::size_t count = 0;
    /// True: the last one lies in the exception entry code, and `end` does not count.
    bool exception_entry = false;
    WalkEnd end = WalkEnd::end_of_stack;
};

/// Follows `chain` and stores the return addresses, as many as there is room for. The innermost
/// loop of a capture, inlined into each System with its own way to read: load_pair(address, first,
/// second) reads the two words at an 8-byte aligned address inside chain.stack, or is false.
template <typename LoadPair>
[[gnu::always_inline]] inline Followed follow_frame_records(
    FrameChain& chain, std::span<std::uint64_t> return_addresses, LoadPair load_pair) {
    constexpr std::uint64_t word = sizeof(std::uint64_t);
    constexpr std::uint64_t record_size = 2 * word;
    const StackRange stack = chain.stack;
    const std::uint64_t entry_begin = chain.entry_low + 1;
    const std::uint64_t entry_size = chain.entry_high - chain.entry_low;
    // The stack as it holds records: wherever one may begin, it ends inside.
    const bool usable = stack.high >= record_size && stack.low <= stack.high - record_size;
    const std::uint64_t last = usable ? stack.high - record_size : 0;

    std::uint64_t* out = return_addresses.data();
    std::uint64_t* const begin = out;
    std::uint64_t* const out_end = out + return_addresses.size();
    std::uint64_t fp = chain.fp;
    std::uint64_t floor = std::max(chain.floor, stack.low);
    Followed followed;
    for (;;) {
        if (fp % word != 0 || fp < floor || fp > last) [[unlikely]] {
            if (fp == 0)
                followed.end = WalkEnd::end_of_stack;
            else if (fp < floor && stack.contains(fp, 0))
                followed.end = WalkEnd::not_upward;
            else
                followed.end = fp % word != 0 ? WalkEnd::misaligned : WalkEnd::outside_stack;
            break;
        }
        std::uint64_t next = 0;
        std::uint64_t return_address = 0;
        if (!load_pair(fp, next, return_address)) [[unlikely]] {
            followed.end = WalkEnd::unreadable;
            break;
        }
        if (return_address == 0) [[unlikely]] {
            followed.end = WalkEnd::end_of_stack;
            break;
        }
        if (out == out_end) [[unlikely]] {
            followed.end = WalkEnd::too_deep;
            break;
        }
        *out++ = return_address;
        floor = fp + record_size;
        fp = next;
        if (return_address - entry_begin < entry_size) [[unlikely]] {
            followed.exception_entry = true;
            break;
        }
    }
    chain.fp = fp;
    chain.floor = floor;
    followed.count = static_cast<std::size_t>(out - begin);
    return followed;
}

}  // namespace stackshot
