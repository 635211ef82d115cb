#pragma once

#include "platform/arm64/devicetree/board.hpp"
#include "platform/arm64/gic/gicv3_registers.hpp"
#include "platform/arm64/gic/interrupt_controller.hpp"

namespace platform {

/// GICv3 [IHI 0069], with affinity routing and the system register interface.
class GicV3 final : public InterruptController {
  public:
    /// Maps the frames the board names.
    [[nodiscard]] GicStatus map(const Gic& gic);

    GicStatus initialize_distributor() override;
    GicStatus initialize_cpu() override;
    GicStatus enable(Intid intid) override;
    void set_priority(Intid intid, std::uint8_t priority) override;
    AcknowledgedInterrupt acknowledge() override;
    void end(AcknowledgedInterrupt interrupt) override;
    void send_sgi(Intid intid, std::span<const Mpidr> targets) override;
    std::uint32_t version() const override { return 3; }

  private:
    struct Region {
        std::uint64_t address;
        std::uint64_t size;
        std::uint64_t stride;
    };

    GicStatus wait_for_distributor() const;
    /// The redistributor of the CPU this runs on; nullptr if none has its affinity.
    volatile gicv3::GICR* redistributor() const;

    volatile gicv3::GICD* gicd_ = nullptr;
    BoundedList<Region, decltype(Gic::redistributors)::capacity> regions_{};
};

}  // namespace platform
