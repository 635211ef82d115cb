#pragma once

#include <cstdint>
#include <optional>

#include "platform/arm64/mmu/descriptor.hpp"
#include "platform/arm64/mmu/status.hpp"
#include "platform/arm64/types.hpp"

namespace platform::mmu {

/// Changes translation tables. `Memory` says how tables are reached and where new ones come from:
///
///     Descriptor* table(PhysicalAddress);            // the table at that address
///     std::optional<PhysicalAddress> new_table();    // zeroed
///
/// so that the same code runs before the MMU is on, after it, and in host tests. Entries only go
/// from invalid to valid, so that no TLB holds one that changes; barriers are the caller's.
template <typename Memory>
class TableEditor {
  public:
    constexpr TableEditor(Memory memory, PhysicalAddress root) : memory_(memory), root_(root) {}

    /// Maps [address, address + size) to `physical` on, with the largest blocks that fit. With
    /// `keep_existing`, parts that are mapped already, to the same place with the same attributes,
    /// are left as they are; otherwise they are already_mapped.
    Status map(std::uint64_t address, PhysicalAddress physical, std::uint64_t size,
               Descriptor attributes, bool keep_existing = false) {
        if ((address | physical.value() | size) % entry_size(3) != 0)
            return Status::misaligned;
        while (size != 0) {
            std::uint64_t done = 0;
            const Status status =
                map_entry(address, physical, size, attributes, keep_existing, done);
            if (status != Status::ok)
                return status;
            address += done;
            physical = physical + done;
            size -= done;
        }
        return Status::ok;
    }

  private:
    // A walk may read an entry at any time: it must be written in one piece.
    static Descriptor load(const Descriptor& entry) {
        return __atomic_load_n(&entry, __ATOMIC_RELAXED);
    }
    static void store(Descriptor& entry, Descriptor value) {
        __atomic_store_n(&entry, value, __ATOMIC_RELEASE);
    }

    Status map_entry(std::uint64_t address, PhysicalAddress physical, std::uint64_t size,
                     Descriptor attributes, bool keep_existing, std::uint64_t& done) {
        Descriptor* table = memory_.table(root_);
        for (unsigned level = 0;; ++level) {
            Descriptor& entry = table[entry_index(address, level)];
            const Descriptor old = load(entry);
            const std::uint64_t span = entry_size(level);
            const bool fits =
                level >= 1 && (address | physical.value()) % span == 0 && size >= span;
            if (is_table(old, level)) {
                table = memory_.table(output_address(old));
            } else if (is_valid(old)) {
                const std::uint64_t into = address % span;
                if (!keep_existing || old != leaf_descriptor(physical - into, level, attributes))
                    return Status::already_mapped;
                done = size < span - into ? size : span - into;
                return Status::ok;
            } else if (fits) {
                store(entry, leaf_descriptor(physical, level, attributes));
                done = span;
                return Status::ok;
            } else {
                const std::optional<PhysicalAddress> next = memory_.new_table();
                if (!next)
                    return Status::no_table_page;
                // Release: a walk that finds the table finds it zeroed.
                store(entry, table_descriptor(*next));
                table = memory_.table(*next);
            }
        }
    }

    Memory memory_;
    PhysicalAddress root_;
};

}  // namespace platform::mmu
