#include <catch2/catch_test_macros.hpp>
#include <string>

#include "platform/arm64/cpu/registers.hpp"
#include "platform/arm64/cpu/secondary_entry.hpp"
#include "platform/arm64/exception/handlers.hpp"
#include "platform/arm64/gic/gicv2_registers.hpp"
#include "platform/arm64/gic/gicv3_registers.hpp"
#include "platform/arm64/pl011/pl011_registers.hpp"

using namespace platform;

TEST_CASE("An Mpidr keeps the affinities of MPIDR_EL1 and nothing else") {
    // Aff3 0x12, RES1, U, MT, Aff2 0x34, Aff1 0x56, Aff0 0x78.
    const Mpidr mpidr(0x12'c134'5678);
    CHECK(mpidr.value() == 0x12'0034'5678);
    CHECK(mpidr.aff3() == 0x12);
    CHECK(mpidr.aff2() == 0x34);
    CHECK(mpidr.aff1() == 0x56);
    CHECK(mpidr.aff0() == 0x78);
}

TEST_CASE("No affinity is the key of an entry nobody set") {
    CHECK(secondary_key(Mpidr(0)) != 0);
    CHECK(secondary_key(Mpidr(0x100)) == 0x8000'0100);
}

TEST_CASE("Intids 1020 to 1023 are special") {
    CHECK_FALSE(Intid(1019).is_special());
    for (std::uint32_t n = 1020; n <= 1023; ++n)
        CHECK(Intid(n).is_special());
    CHECK_FALSE(Intid(8192).is_special());
    CHECK(Intid::ppi(15).is_private());
    CHECK_FALSE(Intid::spi(0).is_private());
}

TEST_CASE("PL011 divisors for the clocks and rates we meet") {
    CHECK(baud_divisor(48'000'000, 115'200) == BaudDivisor{26, 3});
    CHECK(baud_divisor(48'000'000, 921'600) == BaudDivisor{3, 16});
    CHECK(baud_divisor(48'000'000, 3'000'000) == BaudDivisor{1, 0});
    CHECK(baud_divisor(9'216'000, 115'200) == BaudDivisor{5, 0});
    CHECK(baud_divisor(9'216'000, 460'800) == BaudDivisor{1, 16});
    CHECK(baud_divisor(9'216'000, 576'000) == BaudDivisor{1, 0});
    // DDI 0183's own example: 4 MHz, 230400 baud, divisor 1.085, 1 and 5/64.
    CHECK(baud_divisor(4'000'000, 230'400) == BaudDivisor{1, 5});
}

TEST_CASE("A PL011 divisor tells the rate, to less than a 64th of it") {
    CHECK(baud_of(48'000'000, {26, 3}) == 115'177);
    CHECK(baud_of(48'000'000, {1, 0}) == 3'000'000);
    CHECK(baud_of(9'216'000, {5, 0}) == 115'200);
    CHECK(baud_of(4'000'000, {1, 5}) == 231'884);
    CHECK(baud_of(48'000'000, {0, 0}) == 0);
    CHECK(baud_of(0, {1, 0}) == 0);
}

TEST_CASE("A rate the clock cannot make has no divisor") {
    CHECK_FALSE(baud_divisor(0, 115'200));
    CHECK_FALSE(baud_divisor(48'000'000, 0));
    CHECK_FALSE(baud_divisor(48'000'000, 4'000'000));
    CHECK_FALSE(baud_divisor(48'000'000, 40));
    CHECK(baud_divisor(48'000'000, 46) == BaudDivisor{65217, 25});
}

TEST_CASE("An SGI goes to the CPUs of one cluster by a target list") {
    using namespace gicv3;
    CHECK(ICC_SGI1R_EL1::target(Mpidr(0)) == 0);
    CHECK(ICC_SGI1R_EL1::target(Mpidr(0x0302)) == 0x3'0000);
    CHECK(ICC_SGI1R_EL1::target(Mpidr(0x12'0034'5678)) == 0x0012'7034'0056'0000);
    CHECK(ICC_SGI1R_EL1::TargetList(Mpidr(0x0302)) == 1 << 2);
    CHECK(ICC_SGI1R_EL1::TargetList(Mpidr(0x1f)) == 1 << 15);
    CHECK(ICC_SGI1R_EL1::intid(Intid::sgi(13)) == 13 << 24);
    CHECK(ICC_SGI1R_EL1::same_target_list(Mpidr(0x100), Mpidr(0x10f)));
    CHECK_FALSE(ICC_SGI1R_EL1::same_target_list(Mpidr(0x100), Mpidr(0x110)));
    CHECK_FALSE(ICC_SGI1R_EL1::same_target_list(Mpidr(0x100), Mpidr(0x200)));
}

TEST_CASE("GICR_TYPER holds the affinity in its upper half") {
    CHECK(gicv3::GICR_TYPER::affinity(0x1234'5678'0000'0010) == Mpidr(0x12'0034'5678));
    CHECK(gicv3::GICR_TYPER::affinity(0x0000'0102'ffff'ffff) == Mpidr(0x102));
}

TEST_CASE("GICD_TYPER.ITLinesNumber counts interrupts up to 1020") {
    CHECK(gicv3::GICD_TYPER::intids(0) == 32);
    CHECK(gicv3::GICD_TYPER::intids(8) == 288);
    CHECK(gicv3::GICD_TYPER::intids(31) == 1020);
    // QEMU's raspi4b.
    CHECK(gicv2::GICD_TYPER::intids(0x66) == 224);
}

TEST_CASE("A GICv2 SGI names CPU interfaces") {
    CHECK(gicv2::GICD_SGIR::value(0b1010, 3) == 0x000a'0003);
}

TEST_CASE("TCR_EL1 has 48-bit addresses and no more physical bits than the granule") {
    // As by the fields of the manual: T0SZ 16, IRGN0 1, ORGN0 1, SH0 3, TG0 0, T1SZ 16, IRGN1 1,
    // ORGN1 1, SH1 3, TG1 2, IPS 4 (44 bits, Cortex-A72).
    CHECK(TCR_EL1::value(4) == 0x0000'0004'b510'3510);
    CHECK(TCR_EL1::IPS(6) == std::uint64_t{5} << 32);
}

TEST_CASE("SCTLR_EL1 as we run with it") {
    CHECK(SCTLR_EL1::off == 0x30d0'0818);
    CHECK(SCTLR_EL1::on == (SCTLR_EL1::off | 1 | 4 | 1 << 12 | 1 << 19));
}

TEST_CASE("Exceptions have the Arm ARM's names") {
    CHECK(std::string(exception_class_name(0x9600'0047)) == "Data Abort");
    CHECK(std::string(exception_class_name(0xf200'03e8)) == "BRK instruction");
    CHECK(std::string(exception_class_name(0x8600'0004)) == "Instruction Abort");
    CHECK(std::string(exception_class_name(std::uint64_t{0x3f} << 26)) ==
          "unknown exception class");
    CHECK(std::string(name(Vector::current_el_spx_serror)) == "current_el_spx_serror");
    CHECK(std::string(name(static_cast<Vector>(99))) == "unknown vector");
}
