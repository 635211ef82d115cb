#include "platform/arm64/gic/interrupt_controller.hpp"

#include "platform/arm64/gic/gicv2.hpp"
#include "platform/arm64/gic/gicv3.hpp"

namespace platform {

namespace {

constinit GicV2 the_gicv2;
constinit GicV3 the_gicv3;
constinit InterruptController* controller = nullptr;

template <typename Controller>
GicStatus start(Controller& candidate, const Gic& gic) {
    if (const GicStatus status = candidate.map(gic); status != GicStatus::ok)
        return status;
    controller = &candidate;
    return candidate.initialize_distributor();
}

}  // namespace

const char* name(GicStatus status) {
    switch (status) {
        case GicStatus::ok:
            return "ok";
        case GicStatus::no_controller:
            return "the device tree has no interrupt controller we know";
        case GicStatus::not_mapped:
            return "its registers cannot be mapped";
        case GicStatus::unknown_version:
            return "PIDR2.ArchRev is not what the device tree says";
        case GicStatus::no_redistributor:
            return "no GICR_TYPER has this CPU's affinity";
        case GicStatus::no_system_registers:
            return "ICC_SRE_EL1.SRE cannot be set";
        case GicStatus::redistributor_asleep:
            return "GICR_WAKER.ChildrenAsleep stays set";
        case GicStatus::distributor_write_pending:
            return "GICD_CTLR.RWP stays set";
        case GicStatus::redistributor_write_pending:
            return "GICR_CTLR.RWP stays set";
        case GicStatus::no_cpu_interface:
            return "GICD_ITARGETSR0 names no CPU interface";
    }
    return "unknown";
}

GicStatus initialize_interrupt_controller(const Board& board) {
    switch (board.gic.version) {
        case 2:
            return start(the_gicv2, board.gic);
        case 3:
            return start(the_gicv3, board.gic);
        default:
            return GicStatus::no_controller;
    }
}

InterruptController& interrupt_controller() {
    return *controller;
}

}  // namespace platform
