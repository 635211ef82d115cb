#pragma once

#include <cstdint>

// Fields of the system registers we use, by the Arm ARM's names [DDI 0487 D17], or the GIC
// specification's [IHI 0069 12.2] for ICC_ and ICH_. One namespace a register; a value is built by
// or-ing fields.
namespace platform {

constexpr std::uint64_t bit(unsigned position) {
    return std::uint64_t{1} << position;
}
constexpr std::uint64_t field(std::uint64_t value, unsigned high, unsigned low) {
    return (value >> low) & ((std::uint64_t{1} << (high - low + 1)) - 1);
}

namespace CurrentEL {
constexpr std::uint64_t EL(std::uint64_t value) {
    return field(value, 3, 2);
}
}  // namespace CurrentEL

namespace SPSR {
inline constexpr std::uint64_t DAIF = 0xf << 6;
inline constexpr std::uint64_t EL1h = 0b0101;
}  // namespace SPSR

namespace SCTLR_EL1 {
inline constexpr std::uint64_t M = bit(0);     // address translation
inline constexpr std::uint64_t C = bit(2);     // data caches
inline constexpr std::uint64_t SA = bit(3);    // SP alignment check at EL1
inline constexpr std::uint64_t SA0 = bit(4);   // and at EL0
inline constexpr std::uint64_t I = bit(12);    // instruction caches
inline constexpr std::uint64_t WXN = bit(19);  // what is writable is not executable
// RES1 in Armv8.0: EOS, TSCXT, EIS, SPAN, nTLSMD, LSMAOE.
inline constexpr std::uint64_t RES1 = bit(11) | bit(20) | bit(22) | bit(23) | bit(28) | bit(29);
/// With the MMU and caches off.
inline constexpr std::uint64_t off = RES1 | SA | SA0;
inline constexpr std::uint64_t on = off | M | C | I | WXN;
}  // namespace SCTLR_EL1

namespace ID_AA64MMFR0_EL1 {
constexpr std::uint64_t PARange(std::uint64_t value) {
    return field(value, 3, 0);
}
constexpr std::uint64_t TGran4(std::uint64_t value) {
    return field(value, 31, 28);
}
constexpr std::uint64_t FGT(std::uint64_t value) {
    return field(value, 59, 56);
}
}  // namespace ID_AA64MMFR0_EL1

namespace ID_AA64PFR0_EL1 {
constexpr std::uint64_t GIC(std::uint64_t value) {
    return field(value, 27, 24);
}
}  // namespace ID_AA64PFR0_EL1

namespace ID_AA64DFR0_EL1 {
constexpr std::uint64_t PMUVer(std::uint64_t value) {
    return field(value, 11, 8);
}
}  // namespace ID_AA64DFR0_EL1

namespace TCR_EL1 {
constexpr std::uint64_t T0SZ(std::uint64_t address_bits) {
    return 64 - address_bits;
}
constexpr std::uint64_t T1SZ(std::uint64_t address_bits) {
    return (64 - address_bits) << 16;
}
// Table walks: Normal Write-Back Read-Allocate Write-Allocate, Inner Shareable.
inline constexpr std::uint64_t IRGN0_WBWA = 0b01 << 8;
inline constexpr std::uint64_t ORGN0_WBWA = 0b01 << 10;
inline constexpr std::uint64_t SH0_inner = 0b11 << 12;
inline constexpr std::uint64_t TG0_4K = 0b00 << 14;
inline constexpr std::uint64_t IRGN1_WBWA = bit(24);
inline constexpr std::uint64_t ORGN1_WBWA = bit(26);
inline constexpr std::uint64_t SH1_inner = std::uint64_t{0b11} << 28;
inline constexpr std::uint64_t TG1_4K = std::uint64_t{0b10} << 30;
inline constexpr std::uint64_t EPD0 = bit(7);  // no walks with TTBR0_EL1
/// From ID_AA64MMFR0_EL1.PARange, but no more than the 48 bits a 4 KiB granule has without LPA2.
constexpr std::uint64_t IPS(std::uint64_t pa_range) {
    return (pa_range > 0b0101 ? 0b0101 : pa_range) << 32;
}
/// The kernel's: 48-bit addresses in both halves.
constexpr std::uint64_t value(std::uint64_t pa_range) {
    return T0SZ(48) | IRGN0_WBWA | ORGN0_WBWA | SH0_inner | TG0_4K | T1SZ(48) | IRGN1_WBWA |
           ORGN1_WBWA | SH1_inner | TG1_4K | IPS(pa_range);
}
}  // namespace TCR_EL1

namespace MAIR_EL1 {
inline constexpr std::uint64_t Device_nGnRE = 0x04;
inline constexpr std::uint64_t Normal_WB_RWA = 0xff;  // inner and outer Write-Back, non-transient
// Attribute numbers, for a descriptor's AttrIndx.
inline constexpr std::uint64_t device_index = 0;
inline constexpr std::uint64_t normal_index = 1;
inline constexpr std::uint64_t value =
    Device_nGnRE << (8 * device_index) | Normal_WB_RWA << (8 * normal_index);
}  // namespace MAIR_EL1

namespace CPACR_EL1 {
inline constexpr std::uint64_t FPEN_no_trap = 0b11 << 20;
}  // namespace CPACR_EL1

namespace HCR_EL2 {
inline constexpr std::uint64_t RW = bit(31);  // EL1 is AArch64
}  // namespace HCR_EL2

namespace CNTHCTL_EL2 {
inline constexpr std::uint64_t EL1PCTEN = bit(0);  // EL1 may read CNTPCT_EL0
inline constexpr std::uint64_t EL1PCEN = bit(1);   // and use the EL1 physical timer
}  // namespace CNTHCTL_EL2

namespace CPTR_EL2 {
// With HCR_EL2.E2H 0: FP/SIMD and SVE (TZ, bit 8) are not trapped; SME (TSM, bit 12), which nobody
// here uses, is. RES1 without it.
inline constexpr std::uint64_t RES1 = 0x32ff;
}  // namespace CPTR_EL2

namespace PMCR_EL0 {
inline constexpr std::uint64_t E = bit(0);   // counters run
inline constexpr std::uint64_t P = bit(1);   // event counters to 0
inline constexpr std::uint64_t C = bit(2);   // cycle counter to 0
inline constexpr std::uint64_t LC = bit(6);  // cycle counter is 64 bits wide
constexpr std::uint64_t N(std::uint64_t value) {
    return field(value, 15, 11);
}
}  // namespace PMCR_EL0

namespace CNTKCTL_EL1 {
inline constexpr std::uint64_t EVNTEN = bit(2);
constexpr std::uint64_t EVNTI(std::uint64_t counter_bit) {
    return counter_bit << 4;
}
inline constexpr std::uint64_t EVNTI_max = 15;
}  // namespace CNTKCTL_EL1

namespace CNTV_CTL_EL0 {
inline constexpr std::uint64_t ENABLE = bit(0);
}  // namespace CNTV_CTL_EL0

namespace ICC_SRE_EL2 {
inline constexpr std::uint64_t SRE = bit(0);
inline constexpr std::uint64_t Enable = bit(3);  // EL1 may use ICC_SRE_EL1
}  // namespace ICC_SRE_EL2

namespace ICC_SRE_EL1 {
inline constexpr std::uint64_t SRE = bit(0);
}  // namespace ICC_SRE_EL1

namespace PAR_EL1 {
inline constexpr std::uint64_t F = bit(0);
constexpr std::uint64_t PA(std::uint64_t value) {
    return field(value, 51, 12) << 12;
}
}  // namespace PAR_EL1

}  // namespace platform
