#pragma once

#include <cstdint>

#include "platform/arm64/cpu/registers.hpp"

// ESR_EL1 [DDI 0487 D17.2.37].
namespace platform::ESR_EL1 {

constexpr std::uint64_t EC(std::uint64_t value) {
    return field(value, 31, 26);
}
inline constexpr std::uint64_t EC_data_abort_same_el = 0b100101;

}  // namespace platform::ESR_EL1
