#pragma once

#include <cstdint>

// Calls to the firmware [DEN 0028]. SMC64 form; x0 is the function, x1 to x3 the arguments.
extern "C" std::uint64_t smccc_hvc(std::uint64_t function, std::uint64_t x1, std::uint64_t x2,
                                   std::uint64_t x3);
extern "C" std::uint64_t smccc_smc(std::uint64_t function, std::uint64_t x1, std::uint64_t x2,
                                   std::uint64_t x3);
