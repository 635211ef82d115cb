#pragma once

#include <array>
#include <atomic>

#include "platform/arm64/devicetree/board.hpp"
#include "platform/arm64/gic/gicv2_registers.hpp"
#include "platform/arm64/gic/interrupt_controller.hpp"

namespace platform {

/// GICv2 [IHI 0048]: up to 8 CPU interfaces.
class GicV2 final : public InterruptController {
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
    std::uint32_t version() const override { return 2; }

  private:
    /// The mask of the CPU interface this runs on; 0 if the distributor names none.
    std::uint8_t own_interface() const;

    volatile gicv2::GICD* gicd_ = nullptr;
    volatile gicv2::GICC* gicc_ = nullptr;
    /// Whose CPU interface n is. The numbers have nothing to do with affinities: each CPU reads its
    /// own. All ones: nobody's yet.
    std::array<std::atomic<std::uint64_t>, 8> interfaces_{~0ull, ~0ull, ~0ull, ~0ull,
                                                          ~0ull, ~0ull, ~0ull, ~0ull};
};

}  // namespace platform
