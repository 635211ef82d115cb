#pragma once

#include <cstdint>
#include <span>

#include "platform/arm64/cpu/barrier.hpp"
#include "platform/arm64/devicetree/board.hpp"
#include "platform/arm64/types.hpp"

namespace platform {

enum class GicStatus : std::uint8_t {
    ok,
    no_controller,                ///< the device tree names none we know
    not_mapped,                   ///< its registers could not be mapped
    unknown_version,              ///< GICD_PIDR2.ArchRev is not what the device tree says
    no_redistributor,             ///< none has this CPU's affinity
    no_system_registers,          ///< ICC_SRE_EL1.SRE does not stay set
    redistributor_asleep,         ///< GICR_WAKER.ChildrenAsleep did not clear in time
    distributor_write_pending,    ///< GICD_CTLR.RWP did not clear in time
    redistributor_write_pending,  ///< GICR_CTLR.RWP did not clear in time
    no_cpu_interface,             ///< GICv2: GICD_ITARGETSR0 names no CPU interface
};
/// The status in words; those of a register name it.
const char* name(GicStatus status);

/// An interrupt between acknowledge() and end().
struct AcknowledgedInterrupt {
    Intid intid{};
    /// The whole IAR value: GICv2 wants it back, with the sending CPU in it.
    std::uint32_t iar = 0;
};

/// Priorities; lower is more urgent. GICv2 and v3 implement at least the upper 4 bits, in the
/// Non-secure view.
inline constexpr std::uint8_t default_interrupt_priority = 0xa0;

/// A GIC. All interrupts we use are signalled as IRQ.
class InterruptController {
  public:
    /// Once, on the boot CPU: every SPI off, at the default priority, routed to this CPU.
    [[nodiscard]] virtual GicStatus initialize_distributor() = 0;
    /// On each CPU, interrupts masked: its SGIs on, its PPIs off, its CPU interface on.
    [[nodiscard]] virtual GicStatus initialize_cpu() = 0;

    // Interrupts off. For private interrupts: those of the calling CPU.
    [[nodiscard]] virtual GicStatus enable(Intid intid) = 0;
    virtual void set_priority(Intid intid, std::uint8_t priority) = 0;

    /// The most urgent pending interrupt, now active; intid.is_special() if there is none.
    virtual AcknowledgedInterrupt acknowledge() = 0;
    /// Ends an interrupt acknowledge() returned, on the same CPU. Not for special ones.
    virtual void end(AcknowledgedInterrupt interrupt) = 0;

    /// Sends SGI `intid` to each of `targets`, the caller included if it is one. What this CPU
    /// wrote before is visible to a CPU that takes it. Any context.
    virtual void send_sgi(Intid intid, std::span<const Mpidr> targets) = 0;

    /// Version of the architecture: 2 or 3.
    virtual std::uint32_t version() const = 0;

  protected:
    ~InterruptController() = default;

    /// Behind the read of an IAR. Nothing the handler reads is read before it: the sender's stores
    /// are visible only to what comes after. And cache or TLB maintenance that the interrupted
    /// thread has begun is complete before it can go on, without its own DSB, on another CPU.
    static void after_acknowledge() { cpu::dsb_sy(); }
};

/// Makes the controller the board has the one interrupt_controller() returns, and initializes its
/// distributor. Once, on the boot CPU, which still has to call initialize_cpu().
[[nodiscard]] GicStatus initialize_interrupt_controller(const Board& board);
InterruptController& interrupt_controller();

}  // namespace platform
