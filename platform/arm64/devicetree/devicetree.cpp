#include "platform/arm64/devicetree/devicetree.hpp"

#include <libfdt.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace platform {

namespace {

using Status = DevicetreeStatus;

/// A property's bytes.
struct Property {
    const std::byte* data = nullptr;
    std::size_t size = 0;

    bool exists() const { return data != nullptr; }
    /// The big-endian number of `cells` (0 to 2) cells at byte `offset`, which must be inside.
    std::uint64_t number(std::size_t offset, std::uint32_t cells) const {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < cells * sizeof(fdt32_t); ++i)
            value = value << 8 | std::to_integer<std::uint64_t>(data[offset + i]);
        return value;
    }
};

constexpr std::size_t cell = sizeof(fdt32_t);

/// One pass over a tree. The first error is kept; after it every step returns false at once.
class Parser {
  public:
    Parser(const void* fdt, Board& board) : fdt_(fdt), board_(board) {}

    DevicetreeResult result() const { return result_; }

    bool parse() {
        return root() && chosen() && uart() && psci() && cpus() && cpu_map() && memory() &&
               reserved() && gic() && timer();
    }

  private:
    // --- errors ---

    bool fail(Status status, int node, std::string_view property = {}) {
        result_.status = status;
        auto& where = result_.where;
        if (node < 0 || fdt_get_path(fdt_, node, where.data(), static_cast<int>(where.size())) != 0)
            where[0] = '\0';
        std::size_t length = std::strlen(where.data());
        const auto append = [&](std::string_view text) {
            for (const char c : text)
                if (length + 1 < where.size())
                    where[length++] = c;
            where[length] = '\0';
        };
        if (!property.empty()) {
            if (length != 0)
                append(" ");
            append(property);
        }
        return false;
    }

    // --- properties ---

    Property property(int node, const char* name) const {
        int size = 0;
        const void* data = fdt_getprop(fdt_, node, name, &size);
        if (data == nullptr)
            return {};
        return {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)};
    }

    /// A property that is a string; nullptr if absent or not terminated.
    const char* string(int node, const char* name) const {
        const Property p = property(node, name);
        if (p.size == 0 || p.data[p.size - 1] != std::byte{0})
            return nullptr;
        return reinterpret_cast<const char*>(p.data);
    }

    bool is(int node, const char* name, std::string_view value) const {
        const char* text = string(node, name);
        return text != nullptr && value == text;
    }

    /// A property that is one cell, or `otherwise`.
    std::uint32_t u32(int node, const char* name, std::uint32_t otherwise) const {
        const Property p = property(node, name);
        return p.size == cell ? static_cast<std::uint32_t>(p.number(0, 1)) : otherwise;
    }

    bool compatible(int node, std::string_view value) const {
        const Property p = property(node, "compatible");
        std::string_view rest(reinterpret_cast<const char*>(p.data), p.size);
        while (!rest.empty()) {
            const std::string_view one = rest.substr(0, rest.find('\0'));
            if (one == value)
                return true;
            rest.remove_prefix(one.size() == rest.size() ? one.size() : one.size() + 1);
        }
        return false;
    }

    bool enabled(int node) const {
        const char* status = string(node, "status");
        return status == nullptr || std::string_view(status) == "okay" ||
               std::string_view(status) == "ok";
    }

    /// The first enabled node compatible to `value`; negative if there is none.
    int find_compatible(const char* value) const {
        for (int node = fdt_node_offset_by_compatible(fdt_, -1, value); node >= 0;
             node = fdt_node_offset_by_compatible(fdt_, node, value))
            if (enabled(node))
                return node;
        return -FDT_ERR_NOTFOUND;
    }

    // --- addresses ---

    struct Cells {
        std::uint32_t address = 2;
        std::uint32_t size = 1;

        std::size_t bytes() const { return (address + size) * cell; }
    };

    /// The cells that addresses of `bus`' children have; wider ones than 64 bits are an error.
    std::optional<Cells> cells_of(int bus) const {
        const Cells cells{u32(bus, "#address-cells", 2), u32(bus, "#size-cells", 1)};
        if (cells.address > 2 || cells.size > 2)
            return {};
        return cells;
    }

    /// Takes an address of `bus`' children to the root's, through the `ranges` on the way.
    bool translate(int node, int bus, MemoryRange& range) {
        while (bus != 0) {
            const int parent = fdt_parent_offset(fdt_, bus);
            if (parent < 0)
                return fail(Status::bad_structure, bus);
            const Property ranges = property(bus, "ranges");
            if (!ranges.exists())
                return fail(Status::not_translatable, node, "reg");
            if (ranges.size != 0) {
                const std::optional<Cells> child = cells_of(bus), up = cells_of(parent);
                if (!child || !up)
                    return fail(Status::not_translatable, node, "reg");
                const std::size_t entry = child->bytes() + up->address * cell;
                if (entry == 0 || ranges.size % entry != 0)
                    return fail(Status::bad_property, bus, "ranges");
                bool found = false;
                for (std::size_t at = 0; at < ranges.size && !found; at += entry) {
                    const std::uint64_t from = ranges.number(at, child->address);
                    const std::uint64_t to = ranges.number(at + child->address * cell, up->address);
                    const std::uint64_t size =
                        ranges.number(at + (child->address + up->address) * cell, child->size);
                    const std::uint64_t into = range.base.value() - from;
                    if (range.base.value() >= from && into < size && range.size <= size - into) {
                        range.base = PhysicalAddress(to + into);
                        found = true;
                    }
                }
                if (!found)
                    return fail(Status::not_translatable, node, "reg");
            }
            bus = parent;
        }
        return true;
    }

    /// How many entries `reg` of `node` has; 0 if it has none.
    std::size_t reg_count(int node) {
        const int bus = fdt_parent_offset(fdt_, node);
        const std::optional<Cells> cells = bus < 0 ? std::nullopt : cells_of(bus);
        if (!cells || cells->bytes() == 0)
            return 0;
        return property(node, "reg").size / cells->bytes();
    }

    /// Entry `index` of `reg`, translated.
    bool reg(int node, std::size_t index, MemoryRange& range) {
        const int bus = fdt_parent_offset(fdt_, node);
        const std::optional<Cells> cells = bus < 0 ? std::nullopt : cells_of(bus);
        const Property p = property(node, "reg");
        if (!p.exists())
            return fail(Status::missing_property, node, "reg");
        if (!cells || cells->address == 0 || p.size % cells->bytes() != 0 ||
            (index + 1) * cells->bytes() > p.size)
            return fail(Status::bad_property, node, "reg");
        const std::size_t at = index * cells->bytes();
        range.base = PhysicalAddress(p.number(at, cells->address));
        range.size = p.number(at + cells->address * cell, cells->size);
        if (range.base.value() + range.size < range.base.value())
            return fail(Status::bad_property, node, "reg");
        return translate(node, bus, range);
    }

    // --- interrupts ---

    /// Interrupt `index` of `node` at the GIC; special if it has none, or another controller's.
    Intid interrupt(int node, std::size_t index) {
        int controller = -1;
        for (int at = node; at >= 0 && controller < 0; at = fdt_parent_offset(fdt_, at)) {
            const std::uint32_t phandle = u32(at, "interrupt-parent", 0);
            if (phandle != 0)
                controller = fdt_node_offset_by_phandle(fdt_, phandle);
        }
        if (controller < 0 || !is_gic(controller))
            return {};
        const std::uint32_t cells = u32(controller, "#interrupt-cells", 3);
        const Property p = property(node, "interrupts");
        const std::size_t at = index * cells * cell;
        if (cells < 3 || at + 3 * cell > p.size)
            return {};
        const auto number = static_cast<std::uint32_t>(p.number(at + cell, 1));
        switch (p.number(at, 1)) {
            case 0:
                return number < 988 ? Intid::spi(number) : Intid{};
            case 1:
                return number < 16 ? Intid::ppi(number) : Intid{};
            default:
                return {};
        }
    }

    static constexpr const char* gicv3_compatible = "arm,gic-v3";
    static constexpr const char* gicv2_compatible[] = {"arm,gic-400", "arm,cortex-a15-gic",
                                                       "arm,cortex-a7-gic", "arm,cortex-a9-gic"};

    bool is_gic(int node) const {
        if (compatible(node, gicv3_compatible))
            return true;
        for (const char* value : gicv2_compatible)
            if (compatible(node, value))
                return true;
        return false;
    }

    // --- the parts of the board ---

    bool root() {
        if (const char* model = string(0, "model"))
            board_.model = model;
        else if (const char* first = string(0, "compatible"))
            board_.model = first;
        return true;
    }

    bool chosen() {
        const int node = fdt_path_offset(fdt_, "/chosen");
        if (node >= 0)
            if (const char* bootargs = string(node, "bootargs"))
                board_.bootargs = bootargs;
        return true;
    }

    /// The node `stdout-path` names and the baud rate behind its colon; negative if there is none.
    int stdout_node(std::uint32_t& baud) const {
        const int chosen = fdt_path_offset(fdt_, "/chosen");
        const char* text = chosen < 0 ? nullptr : string(chosen, "stdout-path");
        if (text == nullptr)
            return -FDT_ERR_NOTFOUND;
        const std::string_view path(text);
        const std::size_t colon = path.find(':');
        if (colon != path.npos)
            for (std::size_t i = colon + 1;
                 i < path.size() && path[i] >= '0' && path[i] <= '9' && baud < 100'000'000; ++i)
                baud = baud * 10 + static_cast<std::uint32_t>(path[i] - '0');
        return fdt_path_offset_namelen(fdt_, text,
                                       static_cast<int>(colon == path.npos ? path.size() : colon));
    }

    /// The rate of `node`'s clock named `name`, or its first one; 0 if that is not a fixed clock.
    std::uint32_t clock_rate(int node, std::string_view name) {
        const int named = fdt_stringlist_search(fdt_, node, "clock-names", name.data());
        const Property clocks = property(node, "clocks");
        int index = 0;
        for (std::size_t at = 0; at + cell <= clocks.size; ++index) {
            const int clock =
                fdt_node_offset_by_phandle(fdt_, static_cast<std::uint32_t>(clocks.number(at, 1)));
            if (clock < 0)
                return 0;
            if (index == (named < 0 ? 0 : named))
                return compatible(clock, "fixed-clock") ? u32(clock, "clock-frequency", 0) : 0;
            at += cell + std::size_t{u32(clock, "#clock-cells", 0)} * cell;
        }
        return 0;
    }

    /// The PL011 that stdout-path names, or else the first one that is enabled. None is no error.
    bool uart() {
        std::uint32_t baud = 0;
        int node = stdout_node(baud);
        if (node < 0 || !compatible(node, "arm,pl011")) {
            baud = 0;
            node = find_compatible("arm,pl011");
        }
        if (node < 0)
            return true;
        board_.uart.baud = baud;
        board_.uart.clock = clock_rate(node, "uartclk");
        board_.uart.interrupt = interrupt(node, 0);
        return reg(node, 0, board_.uart.registers);
    }

    bool psci() {
        int node = find_compatible("arm,psci-1.0");
        if (node < 0)
            node = find_compatible("arm,psci-0.2");
        if (node < 0)
            return true;
        if (is(node, "method", "hvc"))
            board_.psci_conduit = Conduit::hvc;
        else if (is(node, "method", "smc"))
            board_.psci_conduit = Conduit::smc;
        else
            return fail(Status::bad_property, node, "method");
        return true;
    }

    bool cpus() {
        const int cpus = fdt_path_offset(fdt_, "/cpus");
        if (cpus < 0)
            return fail(Status::missing_node, -1, "/cpus");
        const std::uint32_t cells = u32(cpus, "#address-cells", 1);
        if (cells < 1 || cells > 2)
            return fail(Status::bad_property, cpus, "#address-cells");
        int node = 0;
        fdt_for_each_subnode(node, fdt_, cpus) {
            if (!is(node, "device_type", "cpu"))
                continue;
            // "disabled" is a CPU that waits to be started; "fail" one that cannot be.
            if (const char* status = string(node, "status"))
                if (std::string_view(status).starts_with("fail"))
                    continue;
            const Property reg = property(node, "reg");
            if (reg.size != cells * cell)
                return fail(reg.exists() ? Status::bad_property : Status::missing_property, node,
                            "reg");
            Cpu cpu{.mpidr = Mpidr(reg.number(0, cells)),
                    .capacity = u32(node, "capacity-dmips-mhz", 0)};
            if (cpu.mpidr.value() != reg.number(0, cells))
                return fail(Status::bad_property, node, "reg");
            if (is(node, "enable-method", "psci"))
                cpu.enable_method = EnableMethod::psci;
            else if (is(node, "enable-method", "spin-table"))
                cpu.enable_method = EnableMethod::spin_table;
            const Property release = property(node, "cpu-release-addr");
            if (release.size == cell || release.size == 2 * cell)
                cpu.release_address = PhysicalAddress(
                    release.number(0, static_cast<std::uint32_t>(release.size / cell)));
            if (board_.cpus.push_back(cpu))
                cpu_nodes_[board_.cpus.size() - 1] = node;
            else
                ++board_.cpus_left_out;
        }
        if (board_.cpus.empty())
            return fail(Status::missing_node, cpus, "cpu");
        return true;
    }

    /// The clusters of /cpus/cpu-map: whatever holds cores, however deep it is nested. None of it
    /// is needed; what cannot be understood of it is passed over.
    bool cpu_map() {
        const int map = fdt_path_offset(fdt_, "/cpus/cpu-map");
        if (map < 0)
            return true;
        int cluster_node = -1;
        std::uint32_t cluster = 0;
        int depth = 0;
        for (int node = fdt_next_node(fdt_, map, &depth); node >= 0 && depth > 0;
             node = fdt_next_node(fdt_, node, &depth)) {
            const std::uint32_t phandle = u32(node, "cpu", 0);
            if (phandle == 0)
                continue;
            const int parent = cluster_of(node);
            if (cluster_node >= 0 && parent != cluster_node)
                ++cluster;
            cluster_node = parent;
            const int cpu = fdt_node_offset_by_phandle(fdt_, phandle);
            for (std::size_t i = 0; i < board_.cpus.size(); ++i)
                if (cpu_nodes_[i] == cpu)
                    board_.cpus[i].cluster = cluster;
        }
        return true;
    }

    /// The node around the core that `node` is, or is a thread of.
    int cluster_of(int node) const {
        const char* name = fdt_get_name(fdt_, node, nullptr);
        const int parent = fdt_parent_offset(fdt_, node);
        return name != nullptr && std::string_view(name).starts_with("thread")
                   ? fdt_parent_offset(fdt_, parent)
                   : parent;
    }

    bool memory() {
        int node = 0;
        fdt_for_each_subnode(node, fdt_, 0) {
            if (!is(node, "device_type", "memory") || !enabled(node))
                continue;
            if (reg_count(node) == 0)
                return fail(Status::missing_property, node, "reg");
            for (std::size_t i = 0; i < reg_count(node); ++i) {
                MemoryRange range;
                if (!reg(node, i, range))
                    return false;
                if (range.size != 0 && !add_memory(range))
                    return fail(Status::too_many, node, "reg");
            }
        }
        if (board_.memory.empty())
            return fail(Status::missing_node, -1, "memory");
        return true;
    }

    /// Keeps the list ascending and free of overlaps; neighbours become one.
    bool add_memory(MemoryRange range) {
        BoundedList<MemoryRange, decltype(board_.memory)::capacity> merged;
        bool room = true, placed = false;
        for (const MemoryRange& other : board_.memory) {
            if (other.end() < range.base) {
                room = merged.push_back(other) && room;
            } else if (range.end() < other.base) {
                if (!placed)
                    room = merged.push_back(range) && room;
                placed = true;
                room = merged.push_back(other) && room;
            } else {
                const PhysicalAddress base = other.base < range.base ? other.base : range.base;
                const PhysicalAddress end = other.end() > range.end() ? other.end() : range.end();
                range = {base, end - base};
            }
        }
        if (!placed)
            room = merged.push_back(range) && room;
        if (room)
            board_.memory = merged;
        return room;
    }

    bool reserved() {
        const int count = fdt_num_mem_rsv(fdt_);
        for (int i = 0; i < count; ++i) {
            std::uint64_t address = 0, size = 0;
            if (fdt_get_mem_rsv(fdt_, i, &address, &size) != 0)
                return fail(Status::bad_structure, -1, "/memreserve/");
            if (!board_.reserved.push_back({{PhysicalAddress(address), size}, false}))
                return fail(Status::too_many, -1, "/memreserve/");
        }
        const int parent = fdt_path_offset(fdt_, "/reserved-memory");
        if (parent < 0)
            return true;
        int node = 0;
        fdt_for_each_subnode(node, fdt_, parent) {
            // Without `reg` it only asks for a size somewhere, for drivers we do not have.
            if (!enabled(node) || !property(node, "reg").exists())
                continue;
            for (std::size_t i = 0; i < reg_count(node); ++i) {
                ReservedRange range{.no_map = property(node, "no-map").exists()};
                if (!reg(node, i, range.range))
                    return false;
                if (!board_.reserved.push_back(range))
                    return fail(Status::too_many, node, "reg");
            }
        }
        return true;
    }

    bool gic() {
        if (const int node = find_compatible(gicv3_compatible); node >= 0)
            return gicv3(node);
        for (const char* value : gicv2_compatible) {
            const int node = find_compatible(value);
            if (node < 0)
                continue;
            board_.gic.version = 2;
            return reg(node, 0, board_.gic.distributor) && reg(node, 1, board_.gic.cpu_interface);
        }
        return true;
    }

    /// `reg`: GICD, the redistributor regions, and frames for GICv2 compatibility.
    bool gicv3(int node) {
        board_.gic.version = 3;
        if (!reg(node, 0, board_.gic.distributor))
            return false;
        const std::uint32_t regions = u32(node, "#redistributor-regions", 1);
        const Property p = property(node, "redistributor-stride");
        if (p.exists() && p.size != cell && p.size != 2 * cell)
            return fail(Status::bad_property, node, "redistributor-stride");
        const std::uint64_t stride =
            p.exists() ? p.number(0, static_cast<std::uint32_t>(p.size / cell)) : 0;
        for (std::uint32_t i = 0; i < regions; ++i) {
            RedistributorRegion region{.stride = stride};
            if (!reg(node, 1 + i, region.range))
                return false;
            if (!board_.gic.redistributors.push_back(region))
                return fail(Status::too_many, node, "#redistributor-regions");
        }
        return true;
    }

    bool timer() {
        const int node = find_compatible("arm,armv8-timer");
        if (node < 0)
            return true;
        // Without names: secure physical, physical, virtual, hypervisor.
        int place = 2;
        if (property(node, "interrupt-names").exists())
            place = fdt_stringlist_search(fdt_, node, "interrupt-names", "virt");
        if (place >= 0)
            board_.virtual_timer = interrupt(node, static_cast<std::size_t>(place));
        return true;
    }

    const void* fdt_;
    Board& board_;
    /// Offsets of the nodes that board_.cpus are of.
    std::array<int, Board::max_cpus> cpu_nodes_{};
    DevicetreeResult result_{};
};

}  // namespace

const char* name(DevicetreeStatus status) {
    switch (status) {
        case Status::ok:
            return "ok";
        case Status::bad_header:
            return "bad header";
        case Status::bad_structure:
            return "bad structure";
        case Status::missing_node:
            return "missing node";
        case Status::missing_property:
            return "missing property";
        case Status::bad_property:
            return "bad property";
        case Status::not_translatable:
            return "address not translatable";
        case Status::too_many:
            return "too many";
    }
    return "unknown";
}

DevicetreeResult parse_devicetree(std::span<const std::byte> blob, Board& board) {
    // Version 16 brought node names as libfdt's fdt_get_path() expects them.
    if (blob.size() < sizeof(fdt_header) || fdt_check_header(blob.data()) != 0 ||
        fdt_totalsize(blob.data()) > blob.size() || fdt_version(blob.data()) < 16)
        return {Status::bad_header, {}};
    if (fdt_check_full(blob.data(), blob.size()) != 0)
        return {Status::bad_structure, {}};
    Parser parser(blob.data(), board);
    parser.parse();
    return parser.result();
}

std::size_t devicetree_size(std::span<const std::byte> header) {
    if (header.size() < 2 * cell)
        return 0;
    const Property p{header.data(), header.size()};
    return p.number(0, 1) == FDT_MAGIC ? p.number(cell, 1) : 0;
}

bool set_boot_cpu(Board& board, Mpidr mpidr) {
    for (std::size_t i = 0; i < board.cpus.size(); ++i) {
        if (board.cpus[i].mpidr != mpidr)
            continue;
        const Cpu boot = board.cpus[i];
        for (; i > 0; --i)
            board.cpus[i] = board.cpus[i - 1];
        board.cpus[0] = boot;
        return true;
    }
    return false;
}

}  // namespace platform
