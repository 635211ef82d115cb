#include "platform/arm64/devicetree/devicetree.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>

#include "test/unit/platform/device_trees.hpp"

using namespace platform;
using device_trees::Blob;

namespace {

#define REQUIRE_TREE(optional_blob) \
    if (!(optional_blob))           \
    SKIP("the program that makes the device tree is not installed")

/// A tree that parses, for tests to change one thing of.
std::string minimal(const std::string& cpus, const std::string& more = "") {
    return R"(/dts-v1/;
/ {
	#address-cells = <2>;
	#size-cells = <2>;
	compatible = "test,board";
	memory@40000000 { device_type = "memory"; reg = <0 0x40000000 0 0x10000000>; };
	cpus { #address-cells = <1>; #size-cells = <0>; )" +
           cpus + " };\n" + more + "\n};\n";
}
const std::string one_cpu = R"(cpu@0 { device_type = "cpu"; reg = <0>; };)";

struct Parsed {
    Board board{};
    DevicetreeResult result{};
};

/// The strings of the board point into `blob`.
Parsed parse(const Blob& blob) {
    Parsed parsed;
    parsed.result = parse_devicetree(blob, parsed.board);
    return parsed;
}

}  // namespace

TEST_CASE("QEMU virt with GICv3, entered at EL1") {
    const auto blob = device_trees::qemu("virt,gic-version=3",
                                         "-smp 4 -m 1G -kernel /dev/null -append 'tasks=3 x'");
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    INFO(name(result.status) << " " << result.where.data());
    REQUIRE(result.ok());

    CHECK(std::string(board.model) == "linux,dummy-virt");
    CHECK(std::string(board.bootargs) == "tasks=3 x");
    REQUIRE(board.memory.size() == 1);
    CHECK(board.memory[0] == MemoryRange{PhysicalAddress(0x4000'0000), 1u << 30});

    REQUIRE(board.cpus.size() == 4);
    CHECK(board.cpus_left_out == 0);
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(board.cpus[i].mpidr == Mpidr(i));
        CHECK(board.cpus[i].enable_method == EnableMethod::psci);
    }
    CHECK(board.psci_conduit == Conduit::hvc);

    CHECK(board.gic.version == 3);
    CHECK(board.gic.distributor == MemoryRange{PhysicalAddress(0x0800'0000), 0x1'0000});
    REQUIRE(board.gic.redistributors.size() == 1);
    CHECK(board.gic.redistributors[0].range ==
          MemoryRange{PhysicalAddress(0x080a'0000), 0xf6'0000});
    CHECK(board.gic.redistributors[0].stride == 0);

    CHECK(board.uart.registers == MemoryRange{PhysicalAddress(0x0900'0000), 0x1000});
    CHECK(board.uart.clock == 24'000'000);
    CHECK(board.uart.interrupt == Intid::spi(1));

    CHECK(board.virtual_timer == Intid(27));
}

TEST_CASE("QEMU virt entered at EL2 is called by smc") {
    const auto blob = device_trees::qemu("virt,gic-version=3,virtualization=on", "-smp 1");
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    REQUIRE(result.ok());
    CHECK(board.cpus.size() == 1);
    CHECK(board.psci_conduit == Conduit::smc);
}

TEST_CASE("QEMU virt with GICv2 names the CPU interface") {
    const auto blob = device_trees::qemu("virt,gic-version=2", "-smp 2");
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    REQUIRE(result.ok());
    CHECK(board.gic.version == 2);
    CHECK(board.gic.distributor == MemoryRange{PhysicalAddress(0x0800'0000), 0x1'0000});
    CHECK(board.gic.cpu_interface == MemoryRange{PhysicalAddress(0x0801'0000), 0x1'0000});
    CHECK(board.gic.redistributors.empty());
}

TEST_CASE("64 CPUs are in clusters of 16") {
    const auto blob = device_trees::qemu("virt,gic-version=3", "-smp 64");
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    REQUIRE(result.ok());
    REQUIRE(board.cpus.size() == 64);
    for (std::size_t i = 0; i < 64; ++i) {
        CHECK(board.cpus[i].mpidr.aff0() == i % 16);
        CHECK(board.cpus[i].mpidr.aff1() == i / 16);
        CHECK(board.cpus[i].mpidr.aff2() == 0);
    }
}

TEST_CASE("CPUs beyond the most we have room for are counted, redistributors of all are there") {
    const auto blob = device_trees::qemu("virt,gic-version=3", "-smp 128 -m 1G");
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    REQUIRE(result.ok());
    CHECK(board.cpus.size() == 64);
    CHECK(board.cpus_left_out == 64);
    CHECK(board.gic.redistributors.size() == 2);
}

TEST_CASE("Raspberry Pi 4: addresses go through the soc's ranges") {
    const auto blob = device_trees::compile_file("pi4.dts");
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    INFO(name(result.status) << " " << result.where.data());
    REQUIRE(result.ok());

    CHECK(std::string(board.model) == "Raspberry Pi 4 Model B");
    REQUIRE(board.memory.size() == 3);
    CHECK(board.memory[1] == MemoryRange{PhysicalAddress(0x4000'0000), 0xbc00'0000});
    CHECK(board.memory[2] == MemoryRange{PhysicalAddress(0x1'0000'0000), 0x8000'0000});
    REQUIRE(board.reserved.size() == 1);
    CHECK(board.reserved[0].range == MemoryRange{PhysicalAddress(0), 0x1000});
    CHECK_FALSE(board.reserved[0].no_map);

    REQUIRE(board.cpus.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(board.cpus[i].mpidr == Mpidr(i));
        CHECK(board.cpus[i].enable_method == EnableMethod::spin_table);
        CHECK(board.cpus[i].release_address == PhysicalAddress(0xd8 + 8 * i));
    }
    CHECK(board.psci_conduit == Conduit::none);

    CHECK(board.gic.version == 2);
    CHECK(board.gic.distributor == MemoryRange{PhysicalAddress(0xff84'1000), 0x1000});
    CHECK(board.gic.cpu_interface == MemoryRange{PhysicalAddress(0xff84'2000), 0x2000});

    // stdout is the mini UART, which we have no driver for: the first PL011 that is enabled.
    CHECK(board.uart.registers == MemoryRange{PhysicalAddress(0xfe20'1000), 0x200});
    CHECK(board.uart.interrupt == Intid::spi(121));
    CHECK(board.uart.clock == 0);
    CHECK(board.uart.baud == 0);
}

TEST_CASE("Raspberry Pi 5: affinities in Aff1, 37-bit peripherals, firmware memory not mapped") {
    const auto blob = device_trees::compile_file("pi5.dts");
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    INFO(name(result.status) << " " << result.where.data());
    REQUIRE(result.ok());

    REQUIRE(board.cpus.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(board.cpus[i].mpidr.value() == i << 8);
        CHECK(board.cpus[i].enable_method == EnableMethod::psci);
    }
    CHECK(board.psci_conduit == Conduit::smc);

    REQUIRE(board.memory.size() == 2);
    CHECK(board.memory[1] == MemoryRange{PhysicalAddress(0x4000'0000), 0x1'c000'0000});
    REQUIRE(board.reserved.size() == 1);
    CHECK(board.reserved[0].range == MemoryRange{PhysicalAddress(0), 0x8'0000});
    CHECK(board.reserved[0].no_map);

    CHECK(board.gic.distributor.base == PhysicalAddress(0x10'7fff'9000));
    CHECK(board.gic.cpu_interface.base == PhysicalAddress(0x10'7fff'a000));
    // Not RP1's, which comes first: stdout-path names the debug connector's.
    CHECK(board.uart.registers.base == PhysicalAddress(0x10'7d00'1000));
    CHECK(board.uart.clock == 9'216'000);
    CHECK(board.uart.baud == 115200);
    CHECK(board.uart.interrupt == Intid::spi(121));
    CHECK(board.virtual_timer == Intid::ppi(11));
}

TEST_CASE("A UART whose interrupt goes to another controller has none of ours") {
    const auto blob = device_trees::compile(minimal(one_cpu, R"(
	msi: msi { interrupt-controller; #interrupt-cells = <2>; compatible = "other"; phandle = <7>; };
	serial@9000000 { compatible = "arm,pl011"; reg = <0 0x9000000 0 0x1000>;
		interrupt-parent = <&msi>; interrupts = <25 4>; };)"));
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    REQUIRE(result.ok());
    CHECK(board.uart.present());
    CHECK(board.uart.interrupt.is_special());
}

TEST_CASE("A board without UART, GIC, PSCI and timer is a board") {
    const auto blob = device_trees::compile(minimal(one_cpu));
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    REQUIRE(result.ok());
    CHECK_FALSE(board.uart.present());
    CHECK(board.gic.version == 0);
    CHECK(board.psci_conduit == Conduit::none);
    CHECK(board.virtual_timer.is_special());
    CHECK(std::string(board.bootargs).empty());
}

TEST_CASE("Capacity and CPU status are read; a CPU that failed is not used") {
    const auto blob = device_trees::compile(minimal(R"(
	cpu@0 { device_type = "cpu"; reg = <0>; capacity-dmips-mhz = <446>; };
	cpu@1 { device_type = "cpu"; reg = <1>; status = "fail"; };
	cpu@2 { device_type = "cpu"; reg = <2>; status = "disabled"; enable-method = "psci"; };)"));
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    REQUIRE(result.ok());
    REQUIRE(board.cpus.size() == 2);
    CHECK(board.cpus[0].capacity == 446);
    CHECK(board.cpus[1].mpidr == Mpidr(2));
    CHECK(board.cpus[1].enable_method == EnableMethod::psci);
}

TEST_CASE("CPUs are in the clusters that the cpu-map of QEMU virt tells") {
    const auto blob = device_trees::qemu("virt,gic-version=3", "-smp 6,clusters=3,cores=2");
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    REQUIRE(result.ok());
    REQUIRE(board.cpus.size() == 6);
    for (std::size_t i = 0; i < 6; ++i)
        CHECK(board.cpus[i].cluster == i / 2);
}

TEST_CASE("Clusters may be nested, cores may have threads, and a cpu-map need not be right") {
    const auto blob = device_trees::compile(minimal(R"(
	cpu-map {
		socket0 {
			cluster0 {
				cluster0 { core0 { thread0 { cpu = <&a>; }; thread1 { cpu = <&b>; }; };
				           core1 { cpu = <&c>; }; };
				cluster1 { core0 { cpu = <&d>; }; core1 { cpu = <0x7777>; }; };
			};
		};
	};
	a: cpu@0 { device_type = "cpu"; reg = <0>; };
	b: cpu@1 { device_type = "cpu"; reg = <1>; };
	d: cpu@2 { device_type = "cpu"; reg = <2>; };
	c: cpu@3 { device_type = "cpu"; reg = <3>; };
	cpu@4 { device_type = "cpu"; reg = <4>; };)"));
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    REQUIRE(result.ok());
    REQUIRE(board.cpus.size() == 5);
    const std::uint32_t expected[] = {0, 0, 1, 0, 0};
    for (std::size_t i = 0; i < 5; ++i)
        CHECK(board.cpus[i].cluster == expected[i]);
}

TEST_CASE("Memory nodes are merged and sorted") {
    const auto blob = device_trees::compile(minimal(one_cpu, R"(
	memory@50000000 { device_type = "memory"; reg = <0 0x50000000 0 0x1000>, <0 0x8000 0 0x1000>; };
	memory@4f000000 { device_type = "memory"; reg = <0 0x4f000000 0 0x1000000>; };)"));
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    REQUIRE(result.ok());
    REQUIRE(board.memory.size() == 2);
    CHECK(board.memory[0] == MemoryRange{PhysicalAddress(0x8000), 0x1000});
    CHECK(board.memory[1] == MemoryRange{PhysicalAddress(0x4000'0000), 0x1000'1000});
}

TEST_CASE("Addresses go through every bus on the way") {
    const auto blob = device_trees::compile(minimal(one_cpu, R"(
	outer { #address-cells = <1>; #size-cells = <1>; ranges = <0x1000000 0x1 0x0 0x1000000>;
		inner { #address-cells = <2>; #size-cells = <1>; ranges = <5 0x0 0x1200000 0x10000>;
			serial@0 { compatible = "arm,pl011"; reg = <5 0x3000 0x1000>; }; }; };)"));
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    INFO(name(result.status) << " " << result.where.data());
    REQUIRE(result.ok());
    CHECK(board.uart.registers == MemoryRange{PhysicalAddress(0x1'0020'3000), 0x1000});
}

TEST_CASE("Several redistributor regions and their stride are read") {
    const auto blob = device_trees::compile(minimal(one_cpu, R"(
	gic: gic@2f000000 { compatible = "arm,gic-v3"; #interrupt-cells = <3>; interrupt-controller;
		#redistributor-regions = <2>; redistributor-stride = <0x0 0x40000>;
		reg = <0 0x2f000000 0 0x10000>, <0 0x2f100000 0 0x80000>, <0 0x2f200000 0 0x80000>; };)"));
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    REQUIRE(result.ok());
    REQUIRE(board.gic.redistributors.size() == 2);
    CHECK(board.gic.redistributors[1].range.base == PhysicalAddress(0x2f20'0000));
    CHECK(board.gic.redistributors[1].stride == 0x4'0000);
}

TEST_CASE("Timer interrupts can be named, and one can be missing") {
    const auto blob = device_trees::compile(minimal(one_cpu, R"(
	gic: gic@2f000000 { compatible = "arm,gic-400"; #interrupt-cells = <3>; interrupt-controller;
		reg = <0 0x2f000000 0 0x1000>, <0 0x2f002000 0 0x1000>; };
	timer { compatible = "arm,armv8-timer"; interrupt-parent = <&gic>; interrupts = <1 14 4>, <1 11 4>;
		interrupt-names = "phys", "virt"; };)"));
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    REQUIRE(result.ok());
    CHECK(board.virtual_timer == Intid::ppi(11));
}

TEST_CASE("An error names the node and the property") {
    struct Case {
        std::string source;
        DevicetreeStatus status;
        std::string where;
    };
    const Case cases[] = {
        {"/dts-v1/;\n/ { };", DevicetreeStatus::missing_node, "/cpus"},
        {minimal(""), DevicetreeStatus::missing_node, "/cpus cpu"},
        {minimal(R"(cpu@0 { device_type = "cpu"; };)"), DevicetreeStatus::missing_property,
         "/cpus/cpu@0 reg"},
        {minimal(R"(cpu@0 { device_type = "cpu"; reg = <0 0>; };)"), DevicetreeStatus::bad_property,
         "/cpus/cpu@0 reg"},
        {minimal(R"(cpu@0 { device_type = "cpu"; reg = <0x80000000>; };)"),
         DevicetreeStatus::bad_property, "/cpus/cpu@0 reg"},
        {minimal(one_cpu, R"(memory@0 { device_type = "memory"; };)"),
         DevicetreeStatus::missing_property, "/memory@0 reg"},
        {minimal(one_cpu, R"(memory@0 { device_type = "memory"; reg = <0 1 0>; };)"),
         DevicetreeStatus::missing_property, "/memory@0 reg"},
        {minimal(one_cpu, R"(psci { compatible = "arm,psci-1.0"; method = "call"; };)"),
         DevicetreeStatus::bad_property, "/psci method"},
        {minimal(one_cpu, R"(bus { #address-cells = <1>; #size-cells = <1>;
            serial@1 { compatible = "arm,pl011"; reg = <1 1>; }; };)"),
         DevicetreeStatus::not_translatable, "/bus/serial@1 reg"},
        {minimal(one_cpu, R"(bus { #address-cells = <1>; #size-cells = <1>; ranges = <0 0 0 1>;
            serial@1 { compatible = "arm,pl011"; reg = <1 1>; }; };)"),
         DevicetreeStatus::not_translatable, "/bus/serial@1 reg"},
        {minimal(one_cpu, R"(gic { compatible = "arm,gic-v3"; reg = <0 0 0 0x10000>; };)"),
         DevicetreeStatus::bad_property, "/gic reg"},
    };
    for (const Case& one : cases) {
        const auto blob = device_trees::compile(one.source);
        REQUIRE_TREE(blob);
        const auto [board, result] = parse(*blob);
        INFO(one.source);
        CHECK(std::string(name(result.status)) == name(one.status));
        CHECK(std::string(result.where.data()) == one.where);
    }
}

TEST_CASE("The UART is known even if the rest of the tree is wrong") {
    const auto blob = device_trees::compile(minimal(
        "", R"(serial@9000000 { compatible = "arm,pl011"; reg = <0 0x9000000 0 0x1000>; };)"));
    REQUIRE_TREE(blob);
    const auto [board, result] = parse(*blob);
    CHECK_FALSE(result.ok());
    CHECK(board.uart.registers.base == PhysicalAddress(0x900'0000));
}

TEST_CASE("What is no device tree, or not all of one, is a bad header") {
    const auto blob = device_trees::compile(minimal(one_cpu));
    REQUIRE_TREE(blob);
    Board board;
    CHECK(parse_devicetree({}, board).status == DevicetreeStatus::bad_header);
    CHECK(parse_devicetree(std::span(*blob).first(39), board).status ==
          DevicetreeStatus::bad_header);
    CHECK(parse_devicetree(std::span(*blob).first(blob->size() - 1), board).status ==
          DevicetreeStatus::bad_header);
    CHECK(parse_devicetree(Blob(4096), board).status == DevicetreeStatus::bad_header);

    CHECK(devicetree_size(*blob) == blob->size());
    CHECK(devicetree_size(std::span(*blob).first(7)) == 0);
    CHECK(devicetree_size(Blob(8)) == 0);
}

TEST_CASE("A damaged device tree gives an error or a board, never a crash") {
    const auto original = device_trees::compile_file("pi5.dts");
    REQUIRE_TREE(original);
    std::mt19937 random(1);
    std::size_t failed = 0;
    for (int round = 0; round < 20'000; ++round) {
        Blob damaged = *original;
        for (std::size_t n = 1 + random() % 4; n != 0; --n)
            damaged[random() % damaged.size()] = static_cast<std::byte>(random());
        const auto [board, result] = parse(damaged);
        failed += result.ok() ? 0u : 1u;
    }
    CHECK(failed > 0);
    CHECK(failed < 20'000);
}

TEST_CASE("The boot CPU comes first, the others keep their order") {
    const auto blob = device_trees::compile_file("pi5.dts");
    REQUIRE_TREE(blob);
    auto [board, result] = parse(*blob);
    REQUIRE(set_boot_cpu(board, Mpidr(0x200)));
    CHECK(board.cpus[0].mpidr == Mpidr(0x200));
    CHECK(board.cpus[1].mpidr == Mpidr(0x000));
    CHECK(board.cpus[2].mpidr == Mpidr(0x100));
    CHECK(board.cpus[3].mpidr == Mpidr(0x300));
    CHECK_FALSE(set_boot_cpu(board, Mpidr(0x400)));
}
