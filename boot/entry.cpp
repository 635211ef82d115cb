// The start-up of the machine in the order it happens, from the first C++ at the address we are
// linked at to the kernel's main.

#include <cstddef>
#include <cstring>
#include <span>

#include "boot/report.hpp"
#include "kernel/main.hpp"
#include "platform/arm64/cpu/hints.hpp"
#include "platform/arm64/cpu/identity.hpp"
#include "platform/arm64/cpu/interrupts.hpp"
#include "platform/arm64/cpu/secondary.hpp"
#include "platform/arm64/devicetree/devicetree.hpp"
#include "platform/arm64/exception/handlers.hpp"
#include "platform/arm64/image.hpp"
#include "platform/arm64/mmu/boot_tables.hpp"
#include "platform/arm64/mmu/checked_read.hpp"
#include "platform/arm64/mmu/mmu.hpp"
#include "platform/arm64/pl011/pl011.hpp"
#include "platform/arm64/psci/psci.hpp"

namespace boot {

using namespace platform;

// image.ld
extern "C" {
extern char bss_start[];
extern char bss_end[];
extern const char boot_overflow_stack_top[];
}

namespace {

Board board;

/// Finds the UART in the tree, so that from here on there is a way to say what goes wrong.
DevicetreeResult read_device_tree(PhysicalAddress address, std::size_t size) {
    DevicetreeResult result = parse_devicetree({mmu::to_direct_map(address), size}, board);
    if (!board.reserved.push_back({{address, size}, false}) ||
        !board.reserved.push_back({{image::load_address(), image::size()}, false}))
        result.status = DevicetreeStatus::too_many;
    return result;
}

void start_uart() {
    if (!board.uart.present())
        return;
    if (const auto registers =
            mmu::map_device(board.uart.registers.base, board.uart.registers.size)) {
        Pl011 uart(*registers, board.uart.clock);
        uart.initialize(board.uart.baud);
        // Last: what goes wrong up to here is not to be told to a port that may have caused it.
        console_uart() = uart;
    }
}

[[noreturn]] void stop(const char* what, const char* which = "", const char* where = "") {
    report_failure(what, which, where);
    cpu::halt();
}

}  // namespace

/// From entry.S on the boot CPU: EL1, MMU and caches on, interrupts masked, BSS not yet cleared.
/// `device_tree`: x0 as the boot loader gave it. `entry_el`: the level it entered us at.
extern "C" [[noreturn]] void boot_main(std::uint64_t device_tree, std::uint64_t entry_el) {
    std::memset(bss_start, 0, static_cast<std::size_t>(bss_end - bss_start));
    set_overflow_stack(reinterpret_cast<std::uint64_t>(boot_overflow_stack_top));
    kernel::adopt_boot_cpu();
    mmu::leave_identity_map();

    const PhysicalAddress tree(device_tree);
    const std::size_t tree_size = mmu::map_device_tree(tree);
    if (tree_size == 0)
        cpu::halt();  // x0 is no device tree: there is nothing we know of the machine, no UART
                      // either.
    const DevicetreeResult result = read_device_tree(tree, tree_size);
    psci::initialize(board.psci_conduit);
    start_uart();
    // Now there is a way to report one, be it one that firmware left pending.
    cpu::serrors_enable();
    if (!result.ok())
        stop("device tree", name(result.status), result.where.data());
    if (!set_boot_cpu(board, cpu::current_mpidr()))
        stop("device tree", "the boot CPU is not in /cpus");
    if (const mmu::Status status = mmu::map_memory(board); status != mmu::Status::ok)
        stop("mapping RAM", mmu::name(status));
    if (!mmu::checked_read_intact())
        stop("image", "the table of checked loads is not as it should be");
    report_board(board, entry_el);
    kernel::kernel_main(board);
}

/// From entry.S on a secondary: as above, on its own stack.
extern "C" [[noreturn]] void boot_secondary(const SecondaryStart& start) {
    set_overflow_stack(start.overflow_stack_top);
    mmu::leave_identity_map();
    kernel_secondary_main(start.argument);
}

}  // namespace boot
