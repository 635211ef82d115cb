#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace platform {

/// A frame record [AAPCS64 6.4.6]: what x29 points at.
struct FrameRecord {
    std::uint64_t fp;
    std::uint64_t lr;
};

/// All of an interrupted context, as vectors.S saves it on the stack that was in use (or the
/// overflow stack) and restores it. A handler may change all of it but sp.
struct alignas(16) ExceptionFrame {
    std::array<std::uint64_t, 31> x;
    std::uint64_t sp;
    std::uint64_t elr;
    std::uint64_t spsr;
    std::uint64_t esr;
    std::uint64_t far;
    /// {x29, ELR} of the interrupted context: the handler's own record points here, so the chain of
    /// frame records runs through the exception.
    FrameRecord record;
    std::uint64_t fpsr;
    std::uint64_t fpcr;
    /// Kernel code uses general registers only, but the C library's mem* functions use these.
    struct alignas(16) Vector {
        std::uint64_t low;
        std::uint64_t high;
    };
    std::array<Vector, 32> q;

    std::uint64_t fp() const { return x[29]; }
    std::uint64_t lr() const { return x[30]; }
};

/// Addresses of code, [begin, end).
struct CodeRange {
    std::uint64_t begin;
    std::uint64_t end;

    constexpr bool contains(std::uint64_t address) const {
        return address >= begin && address < end;
    }
};

/// The exception entry code. A frame record whose `lr` lies in this range was made by the first
/// function of a handler, and its `fp` is the address of ExceptionFrame::record.
CodeRange exception_entry_range();

/// The frame whose `record` is at `record_address`. The address is only computed with.
inline std::uint64_t exception_frame_address(std::uint64_t record_address) {
    return record_address - offsetof(ExceptionFrame, record);
}

}  // namespace platform
