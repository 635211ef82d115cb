// Entered at EL1 or EL2, MMU off; compiled for that (see meson.build). No absolute addresses.

#include "platform/arm64/cpu/barrier.hpp"
#include "platform/arm64/cpu/hints.hpp"
#include "platform/arm64/cpu/registers.hpp"
#include "platform/arm64/cpu/sysreg.hpp"

namespace boot {

using namespace platform;

extern "C" const char early_vectors[];

namespace {

/// Lets EL1 use what we use there, and traps nothing of it. Everything else at EL2 is off.
void configure_el2() {
    const std::uint64_t mmfr0 = READ_SYSREG(id_aa64mmfr0_el1);
    WRITE_SYSREG(hcr_el2, HCR_EL2::RW);
    cpu::isb();  // HCR_EL2.E2H 0 decides what the registers below are.
    WRITE_SYSREG(cptr_el2, CPTR_EL2::RES1);
    WRITE_SYSREG(hstr_el2, 0);
    WRITE_SYSREG(vttbr_el2, 0);
    if (ID_AA64MMFR0_EL1::FGT(mmfr0) != 0) {
        WRITE_SYSREG(s3_4_c1_c1_4, 0);  // HFGRTR_EL2
        WRITE_SYSREG(s3_4_c1_c1_5, 0);  // HFGWTR_EL2
        WRITE_SYSREG(s3_4_c1_c1_6, 0);  // HFGITR_EL2
        WRITE_SYSREG(s3_4_c3_c1_4, 0);  // HDFGRTR_EL2
        WRITE_SYSREG(s3_4_c3_c1_5, 0);  // HDFGWTR_EL2
    }

    // EL1 sees the machine's own identity and counts from the same zero on every CPU.
    WRITE_SYSREG(vpidr_el2, READ_SYSREG(midr_el1));
    WRITE_SYSREG(vmpidr_el2, READ_SYSREG(mpidr_el1));
    WRITE_SYSREG(cnthctl_el2, CNTHCTL_EL2::EL1PCTEN | CNTHCTL_EL2::EL1PCEN);
    WRITE_SYSREG(cntvoff_el2, 0);

    // MDCR_EL2.HPMN: all event counters are EL1's. Everything else is not trapped.
    const std::uint64_t pmu = ID_AA64DFR0_EL1::PMUVer(READ_SYSREG(id_aa64dfr0_el1));
    WRITE_SYSREG(mdcr_el2, pmu != 0 && pmu != 0b1111 ? PMCR_EL0::N(READ_SYSREG(pmcr_el0)) : 0);

    if (ID_AA64PFR0_EL1::GIC(READ_SYSREG(id_aa64pfr0_el1)) != 0) {
        WRITE_SYSREG(s3_4_c12_c9_5, ICC_SRE_EL2::SRE | ICC_SRE_EL2::Enable);
        cpu::isb();
        // The firmware may keep the system registers to itself (a GICv2 system).
        if ((READ_SYSREG(s3_4_c12_c9_5) & ICC_SRE_EL2::SRE) != 0)
            WRITE_SYSREG(s3_4_c12_c11_0, 0);  // ICH_HCR_EL2
    }
}

/// Goes on at EL1, on the same stack, behind the ERET.
void drop_to_el1() {
    asm volatile(
        "mov x9, sp\n\t"
        "msr sp_el1, x9\n\t"
        "adr x9, 1f\n\t"
        "msr elr_el2, x9\n\t"
        "msr spsr_el2, %0\n\t"
        "isb\n\t"
        "eret\n\t"
        // Nothing is executed behind an ERET, nor speculated.
        "dsb nsh\n\t"
        "isb\n"
        "1:"
        :
        : "r"(SPSR::DAIF | SPSR::EL1h)
        : "x9", "cc", "memory");
}

}  // namespace

/// Returns at EL1 with SPSel 1, MMU off and FP/SIMD usable. Its value is the level we were entered
/// at. From EL3 there is no way on: firmware has to come first.
extern "C" std::uint64_t enter_el1() {
    const std::uint64_t el = CurrentEL::EL(READ_SYSREG(CurrentEL));
    if (el == 3)
        cpu::halt();
    if (el == 2)
        configure_el2();
    WRITE_SYSREG(sctlr_el1, SCTLR_EL1::off);
    WRITE_SYSREG(vbar_el1, reinterpret_cast<std::uint64_t>(early_vectors));
    WRITE_SYSREG(cpacr_el1, CPACR_EL1::FPEN_no_trap);
    WRITE_SYSREG(tpidr_el1, 0);  // per_cpu_pointer()
    WRITE_SYSREG(mdscr_el1, 0);  // no single step or breakpoints of whoever ran before
    cpu::isb();
    if (el == 2)
        drop_to_el1();
    return el;
}

}  // namespace boot
