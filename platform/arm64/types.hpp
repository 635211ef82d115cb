#pragma once

#include <compare>
#include <cstdint>

namespace platform {

/// An address as the memory system sees it. Does not convert to or from a pointer; mmu/layout.hpp
/// has the conversions to and from the direct map.
class PhysicalAddress {
  public:
    constexpr PhysicalAddress() = default;
    constexpr explicit PhysicalAddress(std::uint64_t value) : value_(value) {}

    constexpr std::uint64_t value() const { return value_; }

    constexpr auto operator<=>(const PhysicalAddress&) const = default;
    friend constexpr PhysicalAddress operator+(PhysicalAddress address, std::uint64_t offset) {
        return PhysicalAddress(address.value_ + offset);
    }
    friend constexpr PhysicalAddress operator-(PhysicalAddress address, std::uint64_t offset) {
        return PhysicalAddress(address.value_ - offset);
    }
    /// Bytes from `b` to `a`.
    friend constexpr std::uint64_t operator-(PhysicalAddress a, PhysicalAddress b) {
        return a.value_ - b.value_;
    }

  private:
    std::uint64_t value_ = 0;
};

/// The affinity of a CPU as MPIDR_EL1, PSCI and the device tree's /cpus `reg` hold it [DDI 0487]:
/// Aff3 in bits 39-32, Aff2, Aff1, Aff0 in bits 23-0, everything else 0. Names a CPU of the
/// machine; says nothing about its number.
class Mpidr {
  public:
    static constexpr std::uint64_t affinity_mask = 0xff'00ff'ffff;

    constexpr Mpidr() = default;
    /// Drops the bits that are not affinity (U, MT, RES1).
    constexpr explicit Mpidr(std::uint64_t mpidr_el1) : value_(mpidr_el1 & affinity_mask) {}

    constexpr std::uint64_t value() const { return value_; }
    constexpr std::uint8_t aff0() const { return static_cast<std::uint8_t>(value_); }
    constexpr std::uint8_t aff1() const { return static_cast<std::uint8_t>(value_ >> 8); }
    constexpr std::uint8_t aff2() const { return static_cast<std::uint8_t>(value_ >> 16); }
    constexpr std::uint8_t aff3() const { return static_cast<std::uint8_t>(value_ >> 32); }

    constexpr auto operator<=>(const Mpidr&) const = default;

  private:
    std::uint64_t value_ = 0;
};

/// Number of an interrupt at the GIC [IHI 0069]: SGI 0-15, PPI 16-31, SPI 32-1019.
class Intid {
  public:
    constexpr Intid() = default;
    constexpr explicit Intid(std::uint32_t value) : value_(value) {}

    static constexpr Intid sgi(std::uint32_t number) { return Intid(number); }
    static constexpr Intid ppi(std::uint32_t number) { return Intid(16 + number); }
    static constexpr Intid spi(std::uint32_t number) { return Intid(32 + number); }

    constexpr std::uint32_t value() const { return value_; }
    constexpr bool is_sgi() const { return value_ < 16; }
    /// SGIs and PPIs: each CPU has its own.
    constexpr bool is_private() const { return value_ < 32; }
    /// 1020-1023: no interrupt was pending for us. Not to be ended.
    constexpr bool is_special() const { return value_ >= 1020 && value_ <= 1023; }

    constexpr auto operator<=>(const Intid&) const = default;

  private:
    std::uint32_t value_ = 1023;
};

}  // namespace platform
