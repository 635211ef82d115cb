#include "platform/arm64/spin_table/spin_table.hpp"

#include "platform/arm64/cpu/barrier.hpp"
#include "platform/arm64/cpu/cache.hpp"
#include "platform/arm64/cpu/hints.hpp"
#include "platform/arm64/mmu/mmu.hpp"

namespace platform::spin_table {

bool release(PhysicalAddress release_address, PhysicalAddress entry) {
    if (!mmu::ensure_direct_mapped(release_address, sizeof(std::uint64_t)))
        return false;
    auto* word = reinterpret_cast<volatile std::uint64_t*>(mmu::to_direct_map(release_address));
    *word = entry.value();
    // The waiting CPU reads memory, not our cache. The clean ends in a DSB, so the word is there
    // before the event.
    cpu::clean_to_poc(reinterpret_cast<std::uint64_t>(word), sizeof(*word));
    cpu::sev();
    return true;
}

}  // namespace platform::spin_table
