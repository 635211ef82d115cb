#include "platform/arm64/cpu/secondary.hpp"

#include "platform/arm64/cpu/cache.hpp"
#include "platform/arm64/cpu/secondary_entry.hpp"
#include "platform/arm64/mmu/mmu.hpp"
#include "platform/arm64/spin_table/spin_table.hpp"

namespace platform {

constinit std::uint64_t secondary_mpidrs[Board::max_cpus] = {};
SecondaryStart secondary_starts[Board::max_cpus];
[[gnu::section(".bss.noinit")]] EarlyStack secondary_early_stacks[Board::max_cpus];

namespace {

std::uint64_t address_of(const void* object) {
    return reinterpret_cast<std::uint64_t>(object);
}

}  // namespace

const char* name(StartResult result) {
    switch (result.status) {
        case StartStatus::requested:
            return "requested";
        case StartStatus::no_enable_method:
            return "no enable-method";
        case StartStatus::no_release_address:
            return "no cpu-release-addr";
        case StartStatus::release_address_not_mapped:
            return "cpu-release-addr cannot be mapped";
        case StartStatus::refused:
            return psci::name(result.psci);
    }
    return "unknown";
}

StartResult start_secondary(const Board& board, std::size_t index, const SecondaryStart& start) {
    const Cpu& cpu = board.cpus[index];
    secondary_starts[index] = start;
    secondary_mpidrs[index] = secondary_key(cpu.mpidr);
    // The secondary looks for itself, and uses its early stack, with its MMU and caches off.
    cpu::clean_to_poc(address_of(secondary_mpidrs), sizeof(secondary_mpidrs));
    cpu::clean_and_invalidate_to_poc(address_of(&secondary_early_stacks[index]),
                                     sizeof(EarlyStack));

    const PhysicalAddress entry = *mmu::translate(address_of(secondary_entry));
    switch (cpu.enable_method) {
        case EnableMethod::psci: {
            const psci::Status status = psci::cpu_on(cpu.mpidr, entry, 0);
            return status == psci::Status::SUCCESS ? StartResult{}
                                                   : StartResult{StartStatus::refused, status};
        }
        case EnableMethod::spin_table:
            if (cpu.release_address == PhysicalAddress{})
                return {.status = StartStatus::no_release_address};
            if (!spin_table::release(cpu.release_address, entry))
                return {.status = StartStatus::release_address_not_mapped};
            return {};
        case EnableMethod::none:
            break;
    }
    return {.status = StartStatus::no_enable_method};
}

}  // namespace platform
