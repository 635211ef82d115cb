#include "platform/arm64/gic/gicv2.hpp"

#include <bit>

#include "platform/arm64/cpu/barrier.hpp"
#include "platform/arm64/cpu/identity.hpp"
#include "platform/arm64/mmu/mmu.hpp"

namespace platform {

using namespace gicv2;

namespace {

constexpr std::uint32_t lowest_priority_mask = 0xff;
constexpr std::uint32_t all = 0xffff'ffff;

}  // namespace

GicStatus GicV2::map(const Gic& gic) {
    const auto distributor = mmu::map_device(gic.distributor.base, gic.distributor.size);
    const auto cpu_interface = mmu::map_device(gic.cpu_interface.base, gic.cpu_interface.size);
    if (!distributor || !cpu_interface)
        return GicStatus::not_mapped;
    gicd_ = reinterpret_cast<volatile GICD*>(*distributor);
    gicc_ = reinterpret_cast<volatile GICC*>(*cpu_interface);
    return GicStatus::ok;
}

std::uint8_t GicV2::own_interface() const {
    // The bytes for private interrupts read as the CPU interface that reads them. Some of them may
    // be for interrupts that do not exist.
    std::uint8_t mask = 0;
    for (std::uint32_t intid = 0; intid < 32; ++intid)
        mask = static_cast<std::uint8_t>(mask | gicd_->ITARGETSR[intid]);
    return std::has_single_bit(mask) ? mask : 0;
}

GicStatus GicV2::initialize_distributor() {
    if (ICPIDR2::ArchRev(gicd_->ICPIDR2) != 2)
        return GicStatus::unknown_version;
    const std::uint8_t here = own_interface();
    const std::uint32_t intids = GICD_TYPER::intids(gicd_->TYPER);
    gicd_->CTLR = 0;
    for (std::uint32_t n = 1; n < (intids + 31) / 32; ++n) {
        gicd_->ICENABLER[n] = all;
        gicd_->ICPENDR[n] = all;
        gicd_->ICACTIVER[n] = all;
    }
    for (std::uint32_t intid = 32; intid < intids; ++intid) {
        gicd_->IPRIORITYR[intid] = default_interrupt_priority;
        // With one CPU there is nothing to target, and the bytes read as 0.
        gicd_->ITARGETSR[intid] = here;
    }
    // Groups stay as they are: Secure firmware has made all interrupts group 1; without the
    // Security Extensions they are group 0, and only that is acknowledged through GICC_IAR.
    gicd_->CTLR = GICD_CTLR::Enable;
    return GicStatus::ok;
}

GicStatus GicV2::initialize_cpu() {
    std::uint8_t mask = own_interface();
    if (mask == 0) {
        // A GIC with one CPU interface has no target registers.
        if ((gicd_->TYPER >> 5 & 0b111) != 0)
            return GicStatus::no_cpu_interface;
        mask = 1;
    }
    interfaces_[static_cast<std::size_t>(std::countr_zero(mask))].store(
        cpu::current_mpidr().value(), std::memory_order_release);

    gicd_->ICENABLER[0] = all;
    gicd_->ICPENDR[0] = all;
    gicd_->ICACTIVER[0] = all;
    for (std::uint32_t intid = 0; intid < 32; ++intid)
        gicd_->IPRIORITYR[intid] = default_interrupt_priority;
    gicd_->ICFGR[1] = 0;           // PPIs are levels, the timers' above all
    gicd_->ISENABLER[0] = 0xffff;  // the SGIs

    gicc_->PMR = lowest_priority_mask;
    gicc_->BPR = 0;
    gicc_->CTLR = GICC_CTLR::Enable;
    return GicStatus::ok;
}

GicStatus GicV2::enable(Intid intid) {
    gicd_->ISENABLER[intid.value() / 32] = 1u << (intid.value() % 32);
    return GicStatus::ok;
}

void GicV2::set_priority(Intid intid, std::uint8_t priority) {
    gicd_->IPRIORITYR[intid.value()] = priority;
}

AcknowledgedInterrupt GicV2::acknowledge() {
    const std::uint32_t iar = gicc_->IAR;
    after_acknowledge();
    return {Intid(GICC_IAR::interrupt_id(iar)), iar};
}

void GicV2::end(AcknowledgedInterrupt interrupt) {
    gicc_->EOIR = interrupt.iar;
}

void GicV2::send_sgi(Intid intid, std::span<const Mpidr> targets) {
    std::uint32_t mask = 0;
    for (const Mpidr target : targets)
        for (std::size_t n = 0; n < interfaces_.size(); ++n)
            if (interfaces_[n].load(std::memory_order_acquire) == target.value())
                mask |= 1u << n;
    // What we wrote is visible to whoever takes the SGI.
    cpu::dsb_ishst();
    gicd_->SGIR = GICD_SGIR::value(mask, intid.value());
}

}  // namespace platform
