#include "platform/arm64/cpu/pmu.hpp"

#include "platform/arm64/cpu/barrier.hpp"
#include "platform/arm64/cpu/registers.hpp"
#include "platform/arm64/cpu/sysreg.hpp"

namespace platform::pmu {

namespace {
constexpr std::uint64_t INST_RETIRED = 0x08;
constexpr std::uint64_t cycle_counter = bit(31);
constexpr std::uint64_t event_counter_0 = bit(0);
}  // namespace

bool available() {
    const std::uint64_t version = ID_AA64DFR0_EL1::PMUVer(READ_SYSREG(id_aa64dfr0_el1));
    return version != 0 && version != 0b1111;  // 1111: not PMUv3
}

bool start() {
    if (started())
        return true;
    if (!available() || PMCR_EL0::N(READ_SYSREG(pmcr_el0)) == 0)
        return false;
    WRITE_SYSREG(pmccfiltr_el0, 0);
    WRITE_SYSREG(pmevtyper0_el0, INST_RETIRED);
    WRITE_SYSREG(pmcntenset_el0, cycle_counter | event_counter_0);
    WRITE_SYSREG(pmcr_el0, PMCR_EL0::E | PMCR_EL0::P | PMCR_EL0::C | PMCR_EL0::LC);
    cpu::isb();
    return true;
}

bool started() {
    constexpr std::uint64_t counting = cycle_counter | event_counter_0;
    return available() && (READ_SYSREG(pmcntenset_el0) & counting) == counting;
}

std::uint64_t cycles() {
    cpu::isb();
    return READ_SYSREG(pmccntr_el0);
}

std::uint32_t instructions_retired() {
    cpu::isb();
    return static_cast<std::uint32_t>(READ_SYSREG(pmevcntr0_el0));
}

}  // namespace platform::pmu
