#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "platform/arm64/types.hpp"

// GICv3 registers [IHI 0069 12]: the ones for Affinity Routing, in the Non-secure view (or that of
// a GIC with one Security state).
namespace platform::gicv3 {

/// Distributor [IHI 0069 12.8].
struct GICD {
    std::uint32_t CTLR;
    std::uint32_t TYPER;
    std::uint32_t IIDR;
    std::uint32_t TYPER2;
    std::uint32_t STATUSR;
    std::uint32_t reserved_0014[27];
    std::uint32_t IGROUPR[32];
    std::uint32_t ISENABLER[32];
    std::uint32_t ICENABLER[32];
    std::uint32_t ISPENDR[32];
    std::uint32_t ICPENDR[32];
    std::uint32_t ISACTIVER[32];
    std::uint32_t ICACTIVER[32];
    std::uint8_t IPRIORITYR[1024];
    std::uint32_t ITARGETSR[256];
    std::uint32_t ICFGR[64];
    std::uint32_t IGRPMODR[64];
    std::uint32_t reserved_0e00[5248];
    /// From GICD_IROUTER<n> for INTID n; the first 32 are reserved.
    std::uint64_t IROUTER[1020];
    std::uint32_t reserved_7fe0[8188];
    std::uint32_t PIDR4[4];
    std::uint32_t PIDR0;
    std::uint32_t PIDR1;
    std::uint32_t PIDR2;
};
static_assert(offsetof(GICD, IGROUPR) == 0x0080);
static_assert(offsetof(GICD, IPRIORITYR) == 0x0400);
static_assert(offsetof(GICD, ICFGR) == 0x0c00);
static_assert(offsetof(GICD, IROUTER) == 0x6000);
static_assert(offsetof(GICD, PIDR2) == 0xffe8);

namespace GICD_CTLR {
inline constexpr std::uint32_t EnableGrp1A = 1u << 1;
inline constexpr std::uint32_t ARE_NS = 1u << 4;
inline constexpr std::uint32_t RWP = 1u << 31;
}  // namespace GICD_CTLR

namespace GICD_TYPER {
/// INTIDs from 0 on that the distributor has, special ones not included.
constexpr std::uint32_t intids(std::uint32_t value) {
    const std::uint32_t count = 32 * ((value & 0x1f) + 1);
    return count < 1020 ? count : 1020;
}
}  // namespace GICD_TYPER

namespace PIDR2 {
constexpr std::uint32_t ArchRev(std::uint32_t value) {
    return value >> 4 & 0xf;
}
}  // namespace PIDR2

/// Redistributor, frame RD_base [IHI 0069 12.10].
struct GICR_RD {
    std::uint32_t CTLR;
    std::uint32_t IIDR;
    std::uint64_t TYPER;
    std::uint32_t STATUSR;
    std::uint32_t WAKER;
    std::uint32_t reserved_0018[16372];
    std::uint32_t PIDR2;
    std::uint32_t reserved_ffec[5];
};
static_assert(offsetof(GICR_RD, TYPER) == 0x0008);
static_assert(offsetof(GICR_RD, WAKER) == 0x0014);
static_assert(offsetof(GICR_RD, PIDR2) == 0xffe8);
static_assert(sizeof(GICR_RD) == 0x1'0000);

/// Redistributor, frame SGI_base [IHI 0069 12.11]: the private interrupts, INTID 0 to 31.
struct GICR_SGI {
    std::uint32_t reserved_0000[32];
    std::uint32_t IGROUPR0;
    std::uint32_t reserved_0084[31];
    std::uint32_t ISENABLER0;
    std::uint32_t reserved_0104[31];
    std::uint32_t ICENABLER0;
    std::uint32_t reserved_0184[31];
    std::uint32_t ISPENDR0;
    std::uint32_t reserved_0204[31];
    std::uint32_t ICPENDR0;
    std::uint32_t reserved_0284[31];
    std::uint32_t ISACTIVER0;
    std::uint32_t reserved_0304[31];
    std::uint32_t ICACTIVER0;
    std::uint32_t reserved_0384[31];
    std::uint8_t IPRIORITYR[32];
    std::uint32_t reserved_0420[504];
    std::uint32_t ICFGR[2];
    std::uint32_t reserved_0c08[15614];
};
static_assert(offsetof(GICR_SGI, IGROUPR0) == 0x0080);
static_assert(offsetof(GICR_SGI, ICACTIVER0) == 0x0380);
static_assert(offsetof(GICR_SGI, IPRIORITYR) == 0x0400);
static_assert(offsetof(GICR_SGI, ICFGR) == 0x0c00);
static_assert(sizeof(GICR_SGI) == 0x1'0000);

/// One redistributor as we use it; with GICR_TYPER.VLPIS two more frames follow.
struct GICR {
    GICR_RD rd;
    GICR_SGI sgi;
};
static_assert(sizeof(GICR) == 0x2'0000);

namespace GICR_CTLR {
inline constexpr std::uint32_t RWP = 1u << 3;
}  // namespace GICR_CTLR

namespace GICR_TYPER {
inline constexpr std::uint64_t VLPIS = 1u << 1;
inline constexpr std::uint64_t Last = 1u << 4;
/// Affinity_Value: Aff3 to Aff0 from bit 63 down.
constexpr Mpidr affinity(std::uint64_t value) {
    const std::uint64_t packed = value >> 32;
    return Mpidr((packed & 0xff00'0000) << 8 | (packed & 0xff'ffff));
}
}  // namespace GICR_TYPER

namespace GICR_WAKER {
inline constexpr std::uint32_t ProcessorSleep = 1u << 1;
inline constexpr std::uint32_t ChildrenAsleep = 1u << 2;
}  // namespace GICR_WAKER

/// GICD_IROUTER<n>: to one CPU.
constexpr std::uint64_t irouter(Mpidr target) {
    return target.value();
}

namespace ICC_SGI1R_EL1 {
/// CPUs with Aff0 in [16 * RS, 16 * RS + 16) of one cluster Aff3.Aff2.Aff1 are reached by one
/// write.
constexpr bool same_target_list(Mpidr a, Mpidr b) {
    return (a.value() & ~std::uint64_t{0xf}) == (b.value() & ~std::uint64_t{0xf});
}
/// RS: which 16 values of Aff0 the target list is for; other than 0 needs ICC_CTLR_EL1.RSS.
constexpr std::uint64_t target(Mpidr cpu) {
    return std::uint64_t{cpu.aff3()} << 48 | (std::uint64_t{cpu.aff0()} >> 4) << 44 |
           std::uint64_t{cpu.aff2()} << 32 | std::uint64_t{cpu.aff1()} << 16;
}
constexpr std::uint64_t TargetList(Mpidr cpu) {
    return std::uint64_t{1} << (cpu.aff0() & 0xf);
}
constexpr std::uint64_t intid(Intid sgi) {
    return std::uint64_t{sgi.value()} << 24;
}
}  // namespace ICC_SGI1R_EL1

}  // namespace platform::gicv3
