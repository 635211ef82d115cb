#pragma once

#include <array>
#include <cstdint>

namespace kernel::selftest {

/// What every register of a thread holds.
struct RegisterPattern {
    std::array<std::uint64_t, 31> x;
    std::uint64_t nzcv;  ///< bits 31-28
    struct alignas(16) Vector {
        std::uint64_t low, high;
    };
    std::array<Vector, 32> q;
    std::uint64_t fpsr;
    std::uint64_t fpcr;
};
static_assert(sizeof(RegisterPattern) == 256 + 512 + 16);

/// Puts `pattern` into x0-x30, NZCV, q0-q31, FPSR and FPCR, runs some eight thousand instructions
/// that touch none of them, and stores what they hold then in `found`. Returns the difference of
/// SP.
extern "C" std::uint64_t hold_register_pattern(const RegisterPattern& pattern,
                                               RegisterPattern& found);

}  // namespace kernel::selftest
