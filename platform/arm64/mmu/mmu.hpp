#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "platform/arm64/mmu/layout.hpp"
#include "platform/arm64/mmu/status.hpp"
#include "platform/arm64/types.hpp"

/// The kernel's one set of translation tables. Callers serialize the functions that change it.
namespace platform::mmu {

/// Gives one zeroed page of RAM by its direct map address, or nullptr.
using TablePageSource = void* (*)();
/// Where new translation tables come from. Until this is called: a small pool inside the image.
void set_table_page_source(TablePageSource source);

/// Maps pages of RAM at `address` in [vm_base, vm_end) readable and writable, not executable. The
/// mapping can be used on every CPU when this returns, and is for good. Parts already done stay on
/// an error.
[[nodiscard]] Status map_pages(std::uint64_t address, PhysicalAddress physical, std::size_t size);

/// Maps device registers (Device-nGnRE) and returns the address of the first; empty if there are no
/// table pages or addresses left. `physical` and `size` need not be page aligned. For good.
[[nodiscard]] std::optional<std::uint64_t> map_device(PhysicalAddress physical, std::size_t size);

/// Makes sure the direct map has the pages that hold memory outside of the board's RAM; false if
/// there are no table pages.
[[nodiscard]] bool ensure_direct_mapped(PhysicalAddress physical, std::size_t size);

/// What is mapped at `address`, as this CPU translates it for a read (AT S1E1R); empty if nothing.
std::optional<PhysicalAddress> translate(std::uint64_t address);

}  // namespace platform::mmu
