#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/arm64/bounded_list.hpp"
#include "platform/arm64/types.hpp"

namespace platform {

/// Physical memory [base, base + size).
struct MemoryRange {
    PhysicalAddress base{};
    std::uint64_t size = 0;

    constexpr PhysicalAddress end() const { return base + size; }
    constexpr bool operator==(const MemoryRange&) const = default;
};

/// Memory that is not ours to hand out.
struct ReservedRange {
    MemoryRange range{};
    /// Must not even be mapped (`no-map` of a /reserved-memory node).
    bool no_map = false;
};

/// How a secondary CPU is started (`enable-method` of its /cpus node).
enum class EnableMethod : std::uint8_t { none, psci, spin_table };

struct Cpu {
    Mpidr mpidr{};
    EnableMethod enable_method = EnableMethod::none;
    /// `cpu-release-addr`, where enable_method is spin_table; 0 if the node has none.
    PhysicalAddress release_address{};
    /// `capacity-dmips-mhz`; 0 if the node has none.
    std::uint32_t capacity = 0;
    /// Its cluster: the number of the cpu-map node that holds it, in the tree's order. 0 if the
    /// tree has no cpu-map, or does not have the CPU in it.
    std::uint32_t cluster = 0;
};

/// The instruction that calls the firmware [DEN 0028].
enum class Conduit : std::uint8_t { none, hvc, smc };

/// A frame of redistributors [IHI 0069, GICR].
struct RedistributorRegion {
    MemoryRange range{};
    /// Bytes from one redistributor to the next; 0: as GICR_TYPER.VLPIS says.
    std::uint64_t stride = 0;
};

struct Gic {
    /// 2 or 3; 0 if the tree has no interrupt controller we know.
    std::uint32_t version = 0;
    MemoryRange distributor{};
    /// GICv2 only: the CPU interface, GICC.
    MemoryRange cpu_interface{};
    /// GICv3 only.
    BoundedList<RedistributorRegion, 8> redistributors{};
};

/// A PL011.
struct Uart {
    MemoryRange registers{};
    /// UARTCLK in Hz; 0 if the tree does not say.
    std::uint32_t clock = 0;
    /// From stdout-path; 0 if it does not say.
    std::uint32_t baud = 0;
    Intid interrupt{};

    constexpr bool present() const { return registers.size != 0; }
};

/// What the device tree says about the machine we run on, as one plain value.
struct Board {
    static constexpr std::size_t max_cpus = 64;

    /// `model` or the first `compatible` string of the root node. Points into the device tree.
    const char* model = "";
    /// RAM, ascending, without overlaps.
    BoundedList<MemoryRange, 16> memory{};
    /// /memreserve/, /reserved-memory, the device tree itself and the image. May overlap.
    BoundedList<ReservedRange, 64> reserved{};
    /// A CPU's place in this list is its index everywhere in the system. The boot CPU is first.
    BoundedList<Cpu, max_cpus> cpus{};
    /// CPUs of the tree beyond max_cpus: not used, to be named.
    std::uint32_t cpus_left_out = 0;
    Conduit psci_conduit = Conduit::none;
    Gic gic{};
    Uart uart{};
    /// PPI of the generic timer's EL1 virtual timer; special if the tree has none.
    Intid virtual_timer{};
    /// /chosen `bootargs`; empty if absent. Points into the device tree.
    const char* bootargs = "";
};

}  // namespace platform
