#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/arm64/devicetree/board.hpp"
#include "platform/arm64/psci/psci.hpp"

namespace platform {

/// Answer to a request to start a CPU.
enum class StartStatus : std::uint8_t {
    requested,           ///< it will call kernel_secondary_main()
    no_enable_method,    ///< the device tree does not say how
    no_release_address,  ///< spin-table without cpu-release-addr
    release_address_not_mapped,
    refused,  ///< PSCI said no; see StartResult::psci
};

struct StartResult {
    StartStatus status = StartStatus::requested;
    psci::Status psci = psci::Status::SUCCESS;

    constexpr bool ok() const { return status == StartStatus::requested; }
    /// Not ok(), but an earlier request is under way: it may use what it was given.
    constexpr bool may_still_come() const {
        return status == StartStatus::refused && psci == psci::Status::ON_PENDING;
    }
};

/// The PSCI error's name if it was refused, else the status' name.
const char* name(StartResult result);

/// What a secondary is given.
struct SecondaryStart {
    /// Top of the stack it runs on, and of its overflow stack (see mmu/layout.hpp).
    std::uint64_t stack_top = 0;
    std::uint64_t overflow_stack_top = 0;
    /// For kernel_secondary_main().
    void* argument = nullptr;
};

/// Starts CPU `index` of board.cpus by its enable method. Thread or boot context; each CPU once, or
/// again after it was refused. That it got there is for the kernel to wait for, with a bound.
[[nodiscard]] StartResult start_secondary(const Board& board, std::size_t index,
                                          const SecondaryStart& start);

/// Defined by the kernel. A secondary calls it at EL1 in the kernel's address space, on the stack
/// it was given, DAIF masked, overflow stack set, FP/SIMD usable, TPIDR_EL1 0; vectors, SErrors,
/// GIC and timer are the kernel's to set up.
extern "C" [[noreturn]] void kernel_secondary_main(void* argument);

}  // namespace platform
