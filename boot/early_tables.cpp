// Entered at EL1, MMU off; compiled for that (see meson.build). Addresses of globals are physical
// here, for they are computed relative to the PC; nothing may hold one in its initializer.

#include <optional>

#include "platform/arm64/cpu/barrier.hpp"
#include "platform/arm64/cpu/cache.hpp"
#include "platform/arm64/cpu/hints.hpp"
#include "platform/arm64/cpu/registers.hpp"
#include "platform/arm64/cpu/sysreg.hpp"
#include "platform/arm64/mmu/boot_tables.hpp"
#include "platform/arm64/mmu/layout.hpp"
#include "platform/arm64/mmu/table_editor.hpp"

namespace boot {

using namespace platform;
using mmu::boot_tables;
using mmu::boot_tables_used;

// image.ld
extern "C" {
extern const char image_start[];
extern const char image_text_end[];
extern const char image_constants_end[];
extern const char image_data_end[];
extern const char boot_stack_low[];
extern const char boot_stack_top[];
extern const char boot_overflow_stack_low[];
extern const char boot_overflow_stack_top[];
}

namespace {

std::uint64_t address_of(const void* object) {
    return reinterpret_cast<std::uint64_t>(object);
}

/// Tables at their physical addresses. In an unnamed namespace, so that the code made for it stays
/// apart from that of mmu.cpp.
struct EarlyMemory {
    mmu::Descriptor* table(PhysicalAddress address) const {
        return reinterpret_cast<mmu::Descriptor*>(address.value());
    }

    std::optional<PhysicalAddress> new_table() const {
        if (boot_tables_used == mmu::boot_table_count)
            return {};
        mmu::Table& table = boot_tables[boot_tables_used];
        boot_tables_used = boot_tables_used + 1;
        // volatile: not to become a call of memset, which may use DC ZVA.
        for (volatile mmu::Descriptor& entry : table.entries)
            entry = 0;
        return PhysicalAddress(address_of(&table));
    }
};

/// Maps the part [begin, end) of the image where it is linked.
void map_image(const char* begin, const char* end, mmu::Descriptor attributes) {
    mmu::TableEditor<EarlyMemory> editor(
        {}, PhysicalAddress(address_of(&boot_tables[mmu::kernel_root])));
    const std::uint64_t offset = address_of(begin) - address_of(image_start);
    if (editor.map(mmu::image_base + offset, PhysicalAddress(address_of(begin)),
                   address_of(end) - address_of(begin), attributes) != mmu::Status::ok)
        cpu::halt();
}

}  // namespace

/// Maps the image, and its first page at its own address. On the boot CPU, once.
extern "C" void build_early_tables() {
    boot_tables_used = 0;
    const EarlyMemory memory;
    (void)memory.new_table();  // identity_root
    (void)memory.new_table();  // kernel_root

    map_image(image_start, image_text_end, mmu::attributes::text);
    map_image(image_text_end, image_constants_end, mmu::attributes::constants);
    map_image(image_constants_end, image_data_end, mmu::attributes::data);
    map_image(boot_stack_low, boot_stack_top, mmu::attributes::data);
    map_image(boot_overflow_stack_low, boot_overflow_stack_top, mmu::attributes::data);

    mmu::TableEditor<EarlyMemory> identity(
        {}, PhysicalAddress(address_of(&boot_tables[mmu::identity_root])));
    const std::uint64_t first_page = address_of(image_start);
    if (identity.map(first_page, PhysicalAddress(first_page), mmu::page_size,
                     mmu::attributes::text) != mmu::Status::ok)
        cpu::halt();

    // What a cache fetched meanwhile is older than what we wrote, past it, to memory.
    cpu::dsb_sy();
    cpu::invalidate_to_poc(address_of(boot_tables), sizeof(boot_tables));
    cpu::clean_and_invalidate_to_poc(address_of(&boot_tables_used), sizeof(boot_tables_used));
}

/// Gives this CPU the translation regime, still off. Returns the SCTLR_EL1 that turns it on.
extern "C" std::uint64_t prepare_translation() {
    const std::uint64_t mmfr0 = READ_SYSREG(id_aa64mmfr0_el1);
    if (ID_AA64MMFR0_EL1::TGran4(mmfr0) > 1)
        cpu::halt();  // No 4 KiB granule: 0 and 1 are the values that have it.
    WRITE_SYSREG(mair_el1, MAIR_EL1::value);
    WRITE_SYSREG(tcr_el1, TCR_EL1::value(ID_AA64MMFR0_EL1::PARange(mmfr0)));
    WRITE_SYSREG(ttbr0_el1, address_of(&boot_tables[mmu::identity_root]));
    WRITE_SYSREG(ttbr1_el1, address_of(&boot_tables[mmu::kernel_root]));
    cpu::isb();
    // Nothing from before us: TLBs and instruction caches have no defined contents at reset.
    asm volatile(
        "tlbi vmalle1\n\t"
        "ic iallu" ::
            : "memory");
    cpu::dsb_nsh();
    cpu::isb();
    return SCTLR_EL1::on;
}

}  // namespace boot
