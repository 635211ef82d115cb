#include "platform/arm64/mmu/mmu.hpp"

#include "platform/arm64/cpu/barrier.hpp"
#include "platform/arm64/cpu/registers.hpp"
#include "platform/arm64/cpu/sysreg.hpp"
#include "platform/arm64/devicetree/devicetree.hpp"
#include "platform/arm64/devicetree/memory_map.hpp"
#include "platform/arm64/image.hpp"
#include "platform/arm64/mmu/boot_tables.hpp"
#include "platform/arm64/mmu/checked_read.hpp"
#include "platform/arm64/mmu/table_editor.hpp"

namespace platform::mmu {

[[gnu::section(".bss.noinit")]] Table boot_tables[boot_table_count];
[[gnu::section(".bss.noinit")]] std::uint64_t boot_tables_used;

namespace {

TablePageSource table_page_source = nullptr;
std::uint64_t next_device_address = device_base;

std::uint64_t address_of(const void* object) {
    return reinterpret_cast<std::uint64_t>(object);
}

/// Tables of the pool are reached in the image, all others in the direct map.
struct KernelMemory {
    PhysicalAddress pool = image::load_address() + (address_of(boot_tables) - image_base);

    Descriptor* table(PhysicalAddress address) const {
        if (address >= pool && address < pool + sizeof(boot_tables))
            return boot_tables[(address - pool) / sizeof(Table)].entries;
        return reinterpret_cast<Descriptor*>(to_direct_map(address));
    }

    std::optional<PhysicalAddress> new_table() const {
        if (table_page_source != nullptr) {
            void* const page = table_page_source();
            if (page == nullptr)
                return {};
            return from_direct_map(page);
        }
        if (boot_tables_used == boot_table_count)
            return {};
        const std::uint64_t index = boot_tables_used++;
        boot_tables[index] = {};
        return pool + index * sizeof(Table);
    }
};

TableEditor<KernelMemory> editor() {
    const KernelMemory memory;
    return {memory, memory.pool + kernel_root * sizeof(Table)};
}

/// Walks on every CPU see the tables as written so far; this CPU's next instructions use them.
void publish() {
    cpu::dsb_ishst();
    cpu::isb();
}

constexpr std::uint64_t page_down(std::uint64_t value) {
    return value & ~(std::uint64_t{page_size} - 1);
}
constexpr std::uint64_t page_up(std::uint64_t value) {
    return page_down(value + page_size - 1);
}

/// Maps the pages that hold [base, base + size) in the direct map.
Status map_direct(PhysicalAddress base, std::uint64_t size, Descriptor attributes) {
    const std::uint64_t begin = page_down(base.value()), end = page_up(base.value() + size);
    if (end > direct_map_end - direct_map_base)
        return Status::no_address_space;
    const Status status = editor().map(direct_map_base + begin, PhysicalAddress(begin), end - begin,
                                       attributes, true);
    publish();
    return status;
}

}  // namespace

const char* name(Status status) {
    switch (status) {
        case Status::ok:
            return "ok";
        case Status::misaligned:
            return "not page aligned";
        case Status::already_mapped:
            return "already mapped";
        case Status::no_table_page:
            return "no page for a translation table";
        case Status::no_address_space:
            return "no address space";
    }
    return "unknown";
}

void set_table_page_source(TablePageSource source) {
    table_page_source = source;
}

Status map_pages(std::uint64_t address, PhysicalAddress physical, std::size_t size) {
    if (address < vm_base || address >= vm_end || size > vm_end - address)
        return Status::no_address_space;
    const Status status = editor().map(address, physical, size, attributes::data);
    publish();
    return status;
}

std::optional<std::uint64_t> map_device(PhysicalAddress physical, std::size_t size) {
    const std::uint64_t begin = page_down(physical.value());
    const std::uint64_t end = page_up(physical.value() + size);
    // Large frames keep their place within 2 MiB, so that they take blocks instead of tables of
    // pages.
    const std::uint64_t block = entry_size(2);
    std::uint64_t address = next_device_address;
    if (end - begin >= block)
        address = ((address + block - 1) & ~(block - 1)) + begin % block;
    if (size == 0 || end - begin > device_end - address)
        return {};
    if (editor().map(address, PhysicalAddress(begin), end - begin, attributes::device) !=
        Status::ok)
        return {};
    publish();
    next_device_address = address + (end - begin);
    return address + (physical.value() - begin);
}

bool ensure_direct_mapped(PhysicalAddress physical, std::size_t size) {
    return map_direct(physical, size, attributes::data) == Status::ok;
}

std::optional<PhysicalAddress> translate(std::uint64_t address) {
    // PAR_EL1 is one for the CPU: an interrupt between the two instructions may translate as well.
    std::uint64_t daif, par;
    asm volatile(
        "mrs %0, daif\n\t"
        "msr daifset, #2\n\t"
        "at s1e1r, %2\n\t"
        "isb\n\t"
        "mrs %1, par_el1\n\t"
        "msr daif, %0"
        : "=&r"(daif), "=&r"(par)
        : "r"(address)
        : "memory");
    if ((par & PAR_EL1::F) != 0)
        return {};
    return PhysicalAddress(PAR_EL1::PA(par)) + address % page_size;
}

void leave_identity_map() {
    WRITE_SYSREG(tcr_el1, READ_SYSREG(tcr_el1) | TCR_EL1::EPD0);
    cpu::isb();
    // What this CPU still holds of it; others use it while they start.
    asm volatile("tlbi vmalle1" ::: "memory");
    cpu::dsb_nsh();
    cpu::isb();
}

std::size_t map_device_tree(PhysicalAddress address) {
    std::uint64_t header = 0;
    if (address.value() % sizeof(header) != 0 ||
        map_direct(address, sizeof(header), attributes::data) != Status::ok)
        return 0;
    // There may be no memory at all where x0 points to.
    if (!checked_read(address_of(to_direct_map(address)), header))
        return 0;
    const std::size_t size = devicetree_size(std::as_bytes(std::span(&header, 1)));
    if (size == 0 || map_direct(address, size, attributes::data) != Status::ok)
        return 0;
    return size;
}

Status map_memory(const Board& board) {
    const PhysicalAddress load = image::load_address();
    const PhysicalAddress constants_end = load + image::constants_size();
    Status status = map_direct(load, image::constants_size(), attributes::constants);
    if (status != Status::ok)
        return status;

    // The rest of RAM, by whole pages, without what must not be mapped.
    BoundedList<MemoryRange, 65> holes;
    (void)holes.push_back({load, constants_end - load});
    for (const ReservedRange& reserved : board.reserved)
        if (reserved.no_map)
            (void)holes.push_back(reserved.range);
    static_assert(65 > decltype(board.reserved)::capacity);
    for_each_difference(board.memory, holes, [&](MemoryRange range) {
        if (status == Status::ok)
            status = map_direct(range.base, range.size, attributes::data);
    });
    return status;
}

}  // namespace platform::mmu
