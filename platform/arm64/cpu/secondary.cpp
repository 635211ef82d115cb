#include "platform/arm64/cpu/secondary.hpp"

#include "platform/arm64/cpu/cache.hpp"
#include "platform/arm64/cpu/secondary_entry.hpp"
#include "platform/arm64/cpu/secondary_offsets.hpp"
#include "platform/arm64/mmu/mmu.hpp"
#include "platform/arm64/spin_table/spin_table.hpp"

namespace platform {

static_assert(Board::max_cpus == SECONDARY_COUNT);
static_assert(secondary_key(Mpidr{}) == std::uint64_t{1} << SECONDARY_KEY_BIT);
static_assert(offsetof(SecondaryStart, stack_top) == SECONDARY_START_STACK_TOP);
static_assert(sizeof(SecondaryStart) == SECONDARY_START_SIZE);
static_assert(sizeof(EarlyStack) == std::size_t{1} << EARLY_STACK_LOG2_SIZE);

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

namespace {

/// The secondary looks for its key with its MMU and caches off.
void set_key(std::size_t index, std::uint64_t key) {
    secondary_mpidrs[index] = key;
    cpu::clean_to_poc(address_of(&secondary_mpidrs[index]), sizeof(key));
}

StartResult request(const Cpu& cpu) {
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

}  // namespace

StartResult start_secondary(const Board& board, std::size_t index, const SecondaryStart& start) {
    const Cpu& cpu = board.cpus[index];
    secondary_starts[index] = start;
    // Used with its caches off as well.
    cpu::clean_and_invalidate_to_poc(address_of(&secondary_early_stacks[index]),
                                     sizeof(EarlyStack));
    set_key(index, secondary_key(cpu.mpidr));
    const StartResult result = request(cpu);
    // Before the caller takes its stacks back: should it come all the same, it goes no further.
    if (!result.ok() && !result.may_still_come())
        set_key(index, 0);
    return result;
}

}  // namespace platform
