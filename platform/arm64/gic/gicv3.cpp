#include "platform/arm64/gic/gicv3.hpp"

#include "platform/arm64/cpu/barrier.hpp"
#include "platform/arm64/cpu/identity.hpp"
#include "platform/arm64/cpu/registers.hpp"
#include "platform/arm64/cpu/sysreg.hpp"
#include "platform/arm64/mmu/mmu.hpp"
#include "platform/arm64/timer/wait_until.hpp"

namespace platform {

using namespace gicv3;
using timer::wait_until;

namespace {

constexpr std::uint8_t lowest_priority_mask = 0xff;
constexpr std::uint32_t all = 0xffff'ffff;

bool write_done(const volatile GICR_RD& rd) {
    return wait_until([&] { return (rd.CTLR & GICR_CTLR::RWP) == 0; });
}

}  // namespace

GicStatus GicV3::map(const Gic& gic) {
    const auto distributor = mmu::map_device(gic.distributor.base, gic.distributor.size);
    if (!distributor)
        return GicStatus::not_mapped;
    gicd_ = reinterpret_cast<volatile GICD*>(*distributor);
    for (const RedistributorRegion& region : gic.redistributors) {
        const auto address = mmu::map_device(region.range.base, region.range.size);
        if (!address || !regions_.push_back({*address, region.range.size, region.stride}))
            return GicStatus::not_mapped;
    }
    return GicStatus::ok;
}

GicStatus GicV3::wait_for_distributor() const {
    return wait_until([this] { return (gicd_->CTLR & GICD_CTLR::RWP) == 0; })
               ? GicStatus::ok
               : GicStatus::distributor_write_pending;
}

GicStatus GicV3::initialize_distributor() {
    // 3: GICv3, 4: GICv4, which is a superset.
    const std::uint32_t revision = PIDR2::ArchRev(gicd_->PIDR2);
    if (revision != 3 && revision != 4)
        return GicStatus::unknown_version;

    // Off while it is set up. ARE_NS must not change while a group is enabled, and if firmware has
    // set it, not back to 0 either [IHI 0069 12.9.4].
    gicd_->CTLR = gicd_->CTLR & GICD_CTLR::ARE_NS;
    if (const GicStatus status = wait_for_distributor(); status != GicStatus::ok)
        return status;
    gicd_->CTLR = GICD_CTLR::ARE_NS;
    if (const GicStatus status = wait_for_distributor(); status != GicStatus::ok)
        return status;

    const std::uint32_t intids = GICD_TYPER::intids(gicd_->TYPER);
    for (std::uint32_t n = 1; n < (intids + 31) / 32; ++n) {
        gicd_->ICENABLER[n] = all;
        gicd_->ICPENDR[n] = all;
        gicd_->ICACTIVER[n] = all;
        gicd_->IGROUPR[n] = all;
    }
    const std::uint64_t here = irouter(cpu::current_mpidr());
    for (std::uint32_t intid = 32; intid < intids; ++intid) {
        gicd_->IPRIORITYR[intid] = default_interrupt_priority;
        gicd_->IROUTER[intid] = here;
    }
    if (const GicStatus status = wait_for_distributor(); status != GicStatus::ok)
        return status;
    gicd_->CTLR = GICD_CTLR::ARE_NS | GICD_CTLR::EnableGrp1A;
    return wait_for_distributor();
}

volatile GICR* GicV3::redistributor() const {
    const Mpidr here = cpu::current_mpidr();
    for (const Region& region : regions_) {
        std::uint64_t stride = 0;
        for (std::uint64_t at = 0; at + sizeof(GICR) <= region.size; at += stride) {
            auto* const gicr = reinterpret_cast<volatile GICR*>(region.address + at);
            const std::uint64_t typer = gicr->rd.TYPER;
            if (GICR_TYPER::affinity(typer) == here)
                return gicr;
            if ((typer & GICR_TYPER::Last) != 0)
                break;
            stride = region.stride != 0                 ? region.stride
                     : (typer & GICR_TYPER::VLPIS) != 0 ? 2 * sizeof(GICR)
                                                        : sizeof(GICR);
        }
    }
    return nullptr;
}

GicStatus GicV3::initialize_cpu() {
    volatile GICR* const gicr = redistributor();
    if (gicr == nullptr)
        return GicStatus::no_redistributor;

    // Wake it: only then does it forward interrupts [IHI 0069 12.11.42].
    gicr->rd.WAKER = gicr->rd.WAKER & ~GICR_WAKER::ProcessorSleep;
    if (!wait_until([&] { return (gicr->rd.WAKER & GICR_WAKER::ChildrenAsleep) == 0; }))
        return GicStatus::redistributor_asleep;

    gicr->sgi.ICENABLER0 = all;
    if (!write_done(gicr->rd))
        return GicStatus::redistributor_write_pending;
    gicr->sgi.ICPENDR0 = all;
    gicr->sgi.ICACTIVER0 = all;
    gicr->sgi.IGROUPR0 = all;
    for (volatile std::uint8_t& priority : gicr->sgi.IPRIORITYR)
        priority = default_interrupt_priority;
    gicr->sgi.ICFGR[1] = 0;         // PPIs are levels, the timers' above all
    gicr->sgi.ISENABLER0 = 0xffff;  // the SGIs
    if (!write_done(gicr->rd))
        return GicStatus::redistributor_write_pending;

    WRITE_SYSREG(icc_sre_el1, READ_SYSREG(icc_sre_el1) | ICC_SRE_EL1::SRE);
    cpu::isb();  // The other ICC_ registers exist for us from here on.
    if ((READ_SYSREG(icc_sre_el1) & ICC_SRE_EL1::SRE) == 0)
        return GicStatus::no_system_registers;
    // An interrupt that was active when firmware left would keep its priority from us.
    WRITE_SYSREG(icc_ap1r0_el1, 0);
    WRITE_SYSREG(icc_pmr_el1, lowest_priority_mask);
    WRITE_SYSREG(icc_bpr1_el1, 0);
    WRITE_SYSREG(icc_ctlr_el1, 0);  // EOImode 0: end() drops the priority and deactivates.
    WRITE_SYSREG(icc_igrpen1_el1, 1);
    cpu::isb();
    return GicStatus::ok;
}

GicStatus GicV3::enable(Intid intid) {
    const std::uint32_t mask = 1u << (intid.value() % 32);
    if (!intid.is_private()) {
        gicd_->ISENABLER[intid.value() / 32] = mask;
        return wait_for_distributor();
    }
    volatile GICR* const gicr = redistributor();
    if (gicr == nullptr)
        return GicStatus::no_redistributor;
    gicr->sgi.ISENABLER0 = mask;
    return write_done(gicr->rd) ? GicStatus::ok : GicStatus::redistributor_write_pending;
}

void GicV3::set_priority(Intid intid, std::uint8_t priority) {
    if (!intid.is_private())
        gicd_->IPRIORITYR[intid.value()] = priority;
    else if (volatile GICR* const gicr = redistributor())
        gicr->sgi.IPRIORITYR[intid.value()] = priority;
}

AcknowledgedInterrupt GicV3::acknowledge() {
    const auto iar = static_cast<std::uint32_t>(READ_SYSREG(icc_iar1_el1));
    after_acknowledge();
    return {Intid(iar & 0xff'ffff), iar};
}

void GicV3::end(AcknowledgedInterrupt interrupt) {
    WRITE_SYSREG(icc_eoir1_el1, interrupt.iar);
    cpu::isb();
}

void GicV3::send_sgi(Intid intid, std::span<const Mpidr> targets) {
    // What we wrote is visible to whoever takes the SGI: a system register write is not ordered
    // behind stores by itself.
    cpu::dsb_ishst();
    for (std::size_t i = 0; i < targets.size();) {
        const Mpidr first = targets[i];
        std::uint64_t value = ICC_SGI1R_EL1::target(first) | ICC_SGI1R_EL1::intid(intid);
        // Neighbours in the list that one write reaches; in any other order it takes more writes.
        for (; i < targets.size() && ICC_SGI1R_EL1::same_target_list(targets[i], first); ++i)
            value |= ICC_SGI1R_EL1::TargetList(targets[i]);
        WRITE_SYSREG(icc_sgi1r_el1, value);
    }
    cpu::isb();
}

}  // namespace platform
