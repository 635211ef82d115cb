#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kcdata::serial {

/// CRC-32C (Castagnoli; RFC 3720 appendix B.4): reflected polynomial 0x82f63b78, initial value and
/// final xor 0xffffffff.
class Crc32c {
  public:
    constexpr void update(std::span<const std::byte> bytes) {
        for (std::byte byte : bytes)
            state_ = table[(state_ ^ std::to_integer<std::uint32_t>(byte)) & 0xff] ^ (state_ >> 8);
    }
    /// The CRC of all bytes so far.
    constexpr std::uint32_t value() const { return ~state_; }

  private:
    static constexpr std::array<std::uint32_t, 256> table = [] {
        std::array<std::uint32_t, 256> result{};
        for (std::uint32_t index = 0; index < 256; ++index) {
            std::uint32_t crc = index;
            for (int bit = 0; bit < 8; ++bit)
                crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
            result[index] = crc;
        }
        return result;
    }();

    std::uint32_t state_ = 0xffffffff;
};

constexpr std::uint32_t crc32c(std::span<const std::byte> bytes) {
    Crc32c crc;
    crc.update(bytes);
    return crc.value();
}

}  // namespace kcdata::serial
