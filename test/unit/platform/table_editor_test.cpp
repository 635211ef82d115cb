#include "platform/arm64/mmu/table_editor.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <memory>
#include <random>

using namespace platform;
using namespace platform::mmu;

namespace {

/// Tables at made-up physical addresses.
struct Tables {
    std::map<std::uint64_t, std::unique_ptr<std::array<Descriptor, 512>>> tables{};
    std::size_t room = 1000;

    std::optional<PhysicalAddress> add() {
        if (tables.size() == room)
            return {};
        const std::uint64_t address = 0x7'0000'0000 + tables.size() * 0x1000;
        tables[address] = std::make_unique<std::array<Descriptor, 512>>();
        return PhysicalAddress(address);
    }
};

struct FakeMemory {
    Tables* tables;

    Descriptor* table(PhysicalAddress address) const {
        return tables->tables.at(address.value())->data();
    }
    std::optional<PhysicalAddress> new_table() const { return tables->add(); }
};

/// What the MMU would find, by the manual's table walk.
struct Walk {
    std::uint64_t physical;
    Descriptor attributes;
    unsigned level;
};
std::optional<Walk> walk(const Tables& tables, PhysicalAddress root, std::uint64_t address) {
    std::uint64_t table = root.value();
    for (unsigned level = 0; level <= 3; ++level) {
        const unsigned shift = 39 - 9 * level;
        const Descriptor d = (*tables.tables.at(table))[(address >> shift) & 0x1ff];
        if ((d & 1) == 0)
            return {};
        const std::uint64_t output = d & 0x0000'ffff'ffff'f000;
        const bool second_bit = (d & 2) != 0;
        if (level == 3 ? second_bit : !second_bit) {
            REQUIRE(level >= 1);  // no blocks at level 0
            REQUIRE(output % (std::uint64_t{1} << shift) == 0);
            return Walk{output + address % (std::uint64_t{1} << shift),
                        d & ~(std::uint64_t{0x0000'ffff'ffff'f003}), level};
        }
        REQUIRE(second_bit);  // at level 3, 0b01 is reserved
        table = output;
    }
    FAIL("walked past level 3");
    return {};
}

struct Space {
    Tables tables{};
    PhysicalAddress root = *tables.add();
    TableEditor<FakeMemory> editor{FakeMemory{&tables}, root};

    std::optional<Walk> at(std::uint64_t address) { return walk(tables, root, address); }
};

constexpr std::uint64_t base = 0xffff'8000'0000'0000;

}  // namespace

TEST_CASE("What is mapped is found by the manual's walk, and nothing beside it") {
    Space space;
    REQUIRE(space.editor.map(base + 0x3000, PhysicalAddress(0x4000'1000), 0x2000,
                             attributes::data) == Status::ok);
    CHECK(space.at(base + 0x3000)->physical == 0x4000'1000);
    CHECK(space.at(base + 0x4fff)->physical == 0x4000'2fff);
    CHECK(space.at(base + 0x3000)->attributes == attributes::data);
    CHECK_FALSE(space.at(base + 0x2fff));
    CHECK_FALSE(space.at(base + 0x5000));
}

TEST_CASE("Large ranges use the largest blocks their alignment allows") {
    Space space;
    // 4 KiB below 2 MiB, up to 4 KiB behind 3 GiB.
    const std::uint64_t from = 0x1f'f000, size = 0xc000'1000 - from;
    REQUIRE(space.editor.map(base + from, PhysicalAddress(from), size, attributes::data) ==
            Status::ok);
    CHECK(space.at(base + from)->level == 3);
    CHECK(space.at(base + 0x20'0000)->level == 2);
    CHECK(space.at(base + 0x3fff'ffff)->level == 2);
    CHECK(space.at(base + 0x4000'0000)->level == 1);
    CHECK(space.at(base + 0xbfff'ffff)->level == 1);
    CHECK(space.at(base + 0xc000'0000)->level == 3);
    CHECK_FALSE(space.at(base + 0xc000'1000));
    // root; level 1; level 2 for the first GiB and the last page; level 3 twice
    CHECK(space.tables.tables.size() == 6);
}

TEST_CASE("Blocks need the physical address aligned as well") {
    Space space;
    REQUIRE(space.editor.map(base, PhysicalAddress(0x1000), 0x40'0000, attributes::data) ==
            Status::ok);
    CHECK(space.at(base)->level == 3);
    CHECK(space.at(base + 0x3f'ffff)->physical == 0x40'0fff);
}

TEST_CASE("A mapping is not replaced") {
    Space space;
    REQUIRE(space.editor.map(base, PhysicalAddress(0), 0x40'0000, attributes::data) == Status::ok);
    CHECK(space.editor.map(base, PhysicalAddress(0), 0x1000, attributes::data) ==
          Status::already_mapped);
    // Not even by itself with other attributes, or to another place, where existing ones may stay.
    CHECK(space.editor.map(base, PhysicalAddress(0), 0x1000, attributes::constants, true) ==
          Status::already_mapped);
    CHECK(space.editor.map(base + 0x1000, PhysicalAddress(0), 0x1000, attributes::data, true) ==
          Status::already_mapped);
    CHECK(space.at(base + 0x1000)->physical == 0x1000);
}

TEST_CASE("What is mapped already the same way can stay, and is filled around") {
    Space space;
    REQUIRE(space.editor.map(base + 0x20'5000, PhysicalAddress(0x20'5000), 0x2000,
                             attributes::data) == Status::ok);
    REQUIRE(space.editor.map(base, PhysicalAddress(0), 0x80'0000, attributes::data, true) ==
            Status::ok);
    for (std::uint64_t at = 0; at < 0x80'0000; at += 0x1000)
        REQUIRE(space.at(base + at)->physical == at);
    CHECK(space.at(base)->level == 2);
    CHECK(space.at(base + 0x20'0000)->level == 3);
    // Again, now over blocks.
    CHECK(space.editor.map(base, PhysicalAddress(0), 0x80'0000, attributes::data, true) ==
          Status::ok);
}

TEST_CASE("Without a page for a table mapping fails, at each place it could") {
    for (std::size_t room = 1; room < 4; ++room) {
        Space space;
        space.tables.room = room;
        CHECK(space.editor.map(base, PhysicalAddress(0), 0x1000, attributes::data) ==
              Status::no_table_page);
        CHECK_FALSE(space.at(base));
        space.tables.room = 4;
        CHECK(space.editor.map(base, PhysicalAddress(0), 0x1000, attributes::data) == Status::ok);
        CHECK(space.at(base));
    }
}

TEST_CASE("Addresses and sizes are whole pages") {
    Space space;
    CHECK(space.editor.map(base + 8, PhysicalAddress(0), 0x1000, attributes::data) ==
          Status::misaligned);
    CHECK(space.editor.map(base, PhysicalAddress(8), 0x1000, attributes::data) ==
          Status::misaligned);
    CHECK(space.editor.map(base, PhysicalAddress(0), 0x1008, attributes::data) ==
          Status::misaligned);
}

TEST_CASE("Random mappings of pages agree with a plain map") {
    Space space;
    std::map<std::uint64_t, std::uint64_t> model;
    std::mt19937_64 random(7);
    for (int round = 0; round < 200; ++round) {
        // A small space that crosses table boundaries at every level.
        const std::uint64_t regions[] = {base, base + (std::uint64_t{1} << 30) - 0x8000,
                                         base + (std::uint64_t{1} << 39) - 0x8000};
        const std::uint64_t address = regions[random() % 3] + (random() % 16) * 0x1000;
        const std::uint64_t physical = (random() % 0x1000'0000) * 0x1000;
        if (random() % 2 == 0) {
            const Status status =
                space.editor.map(address, PhysicalAddress(physical), 0x1000, attributes::data);
            CHECK(status == (model.contains(address) ? Status::already_mapped : Status::ok));
            model.try_emplace(address, physical);
        }
        const auto found = space.at(address);
        REQUIRE(found.has_value() == model.contains(address));
        if (found)
            REQUIRE(found->physical == model[address]);
    }
}

TEST_CASE("Code is never writable, data never executable, and nothing is EL0's to execute") {
    const auto writable = [](Descriptor d) { return (d & descriptor::AP_read_only) == 0; };
    const auto executable = [](Descriptor d) { return (d & descriptor::PXN) == 0; };
    CHECK((executable(attributes::text) && !writable(attributes::text)));
    CHECK((!executable(attributes::constants) && !writable(attributes::constants)));
    CHECK((!executable(attributes::data) && writable(attributes::data)));
    CHECK((!executable(attributes::device) && writable(attributes::device)));
    for (const Descriptor d :
         {attributes::text, attributes::constants, attributes::data, attributes::device}) {
        CHECK((d & descriptor::UXN) != 0);
        CHECK((d & descriptor::AF) != 0);
    }
}
