#pragma once

#include <cstdint>

namespace platform::mmu {

/// Outcome of a change to the address space.
enum class Status : std::uint8_t {
    ok,
    misaligned,        ///< an address or size is not a multiple of a page
    already_mapped,    ///< something else is mapped there
    no_table_page,     ///< the source of table pages has none left
    no_address_space,  ///< outside of the region, or the region is used up
};
const char* name(Status status);

}  // namespace platform::mmu
