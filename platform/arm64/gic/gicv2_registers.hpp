#pragma once

#include <cstddef>
#include <cstdint>

// GICv2 registers [IHI 0048 4], in the Non-secure view.
namespace platform::gicv2 {

/// Distributor.
struct GICD {
    std::uint32_t CTLR;
    std::uint32_t TYPER;
    std::uint32_t IIDR;
    std::uint32_t reserved_00c[29];
    std::uint32_t IGROUPR[32];
    std::uint32_t ISENABLER[32];
    std::uint32_t ICENABLER[32];
    std::uint32_t ISPENDR[32];
    std::uint32_t ICPENDR[32];
    std::uint32_t ISACTIVER[32];
    std::uint32_t ICACTIVER[32];
    std::uint8_t IPRIORITYR[1024];
    std::uint8_t ITARGETSR[1024];
    std::uint32_t ICFGR[64];
    std::uint32_t reserved_d00[128];
    std::uint32_t SGIR;
    std::uint32_t reserved_f04[57];
    std::uint32_t ICPIDR2;
    std::uint32_t reserved_fec[5];
};
static_assert(offsetof(GICD, IGROUPR) == 0x080);
static_assert(offsetof(GICD, IPRIORITYR) == 0x400);
static_assert(offsetof(GICD, ITARGETSR) == 0x800);
static_assert(offsetof(GICD, SGIR) == 0xf00);
static_assert(offsetof(GICD, ICPIDR2) == 0xfe8);
static_assert(sizeof(GICD) == 0x1000);

namespace GICD_CTLR {
/// EnableGrp1 in the Non-secure view, EnableGrp0 without the Security Extensions: our group,
/// always.
inline constexpr std::uint32_t Enable = 1u << 0;
}  // namespace GICD_CTLR

namespace GICD_TYPER {
/// INTIDs from 0 on that the distributor has, special ones not included.
constexpr std::uint32_t intids(std::uint32_t value) {
    const std::uint32_t count = 32 * ((value & 0x1f) + 1);
    return count < 1020 ? count : 1020;
}
}  // namespace GICD_TYPER

namespace ICPIDR2 {
constexpr std::uint32_t ArchRev(std::uint32_t value) {
    return value >> 4 & 0xf;
}
}  // namespace ICPIDR2

namespace GICD_SGIR {
/// TargetListFilter 0: the CPU interfaces in `interfaces`. NSATT is for Secure writes.
constexpr std::uint32_t value(std::uint32_t interfaces, std::uint32_t sgi) {
    return (interfaces & 0xff) << 16 | sgi;
}
}  // namespace GICD_SGIR

/// CPU interface.
struct GICC {
    std::uint32_t CTLR;
    std::uint32_t PMR;
    std::uint32_t BPR;
    std::uint32_t IAR;
    std::uint32_t EOIR;
};
static_assert(offsetof(GICC, EOIR) == 0x010);

namespace GICC_CTLR {
inline constexpr std::uint32_t Enable = 1u << 0;  // as GICD_CTLR::Enable
}  // namespace GICC_CTLR

namespace GICC_IAR {
constexpr std::uint32_t interrupt_id(std::uint32_t value) {
    return value & 0x3ff;
}
}  // namespace GICC_IAR

}  // namespace platform::gicv2
