#include "stackshot/cfi.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <random>
#include <vector>

using namespace stackshot;

namespace {

constexpr std::uint64_t tables_at = 0xffff'0000'0010'0000;
constexpr std::uint64_t code_at = 0xffff'0000'0008'0000;

/// Assembles .eh_frame_hdr and .eh_frame with one CIE and one function.
class Tables {
  public:
    std::vector<std::uint8_t> cie_instructions{0x0c, 31, 0};  // CFA = sp + 0
    std::vector<std::uint8_t> instructions{};
    std::vector<std::uint8_t> augmentation{'z', 'R', 0};
    std::vector<std::uint8_t> augmentation_data{0x1b};  // pcrel, sdata4
    std::uint8_t version = 1;
    std::uint8_t return_column = 30;
    std::uint8_t code_alignment = 4;
    std::uint8_t data_alignment = 0x78;  // -8
    std::uint32_t function_size = 64;

    std::vector<std::byte> bytes() const {
        std::vector<std::uint8_t> out{1, 0x1b, 0x03, 0x3b};
        put32(out, 16);  // .eh_frame, from here
        put32(out, 1);
        put32(out, static_cast<std::uint32_t>(code_at - tables_at));
        const std::size_t entry_at = out.size();
        put32(out, 0);

        const std::size_t cie_at = out.size();
        std::vector<std::uint8_t> cie;
        put32(cie, 0);
        cie.push_back(version);
        cie.insert(cie.end(), augmentation.begin(), augmentation.end());
        cie.push_back(code_alignment);
        cie.push_back(data_alignment);
        cie.push_back(return_column);
        if (augmentation.size() > 1) {
            cie.push_back(static_cast<std::uint8_t>(augmentation_data.size()));
            cie.insert(cie.end(), augmentation_data.begin(), augmentation_data.end());
        }
        cie.insert(cie.end(), cie_instructions.begin(), cie_instructions.end());
        append_entry(out, cie);

        const std::size_t fde_at = out.size();
        std::vector<std::uint8_t> fde;
        put32(fde, static_cast<std::uint32_t>(fde_at + 4 - cie_at));
        put32(fde, static_cast<std::uint32_t>(code_at - (tables_at + fde_at + 8)));
        put32(fde, function_size);
        if (augmentation.size() > 1)
            fde.push_back(0);
        fde.insert(fde.end(), instructions.begin(), instructions.end());
        append_entry(out, fde);
        put32(out, 0);
        const auto entry = static_cast<std::uint32_t>(fde_at);
        std::memcpy(out.data() + entry_at, &entry, sizeof(entry));
        const auto* data = reinterpret_cast<const std::byte*>(out.data());
        return {data, data + out.size()};
    }

    CfiStatus find(std::uint64_t offset, FrameRule& rule) const {
        const auto memory = bytes();
        return UnwindTables(memory, tables_at).find(code_at + offset, rule);
    }
    FrameRule rule(std::uint64_t offset) const {
        FrameRule rule;
        REQUIRE(find(offset, rule) == CfiStatus::found);
        return rule;
    }

  private:
    static void put32(std::vector<std::uint8_t>& out, std::uint32_t value) {
        for (unsigned shift = 0; shift < 32; shift += 8)
            out.push_back(static_cast<std::uint8_t>(value >> shift));
    }
    static void append_entry(std::vector<std::uint8_t>& out, std::vector<std::uint8_t> entry) {
        while (entry.size() % 4 != 0)
            entry.push_back(0);
        put32(out, static_cast<std::uint32_t>(entry.size()));
        out.insert(out.end(), entry.begin(), entry.end());
    }
};

bool same(const FrameRule::Slot& slot, FrameRule::Saved saved, std::int64_t offset = 0) {
    return slot.saved == saved && (saved != FrameRule::Saved::at_offset || slot.offset == offset);
}

using enum FrameRule::Saved;

}  // namespace

TEST_CASE("a prologue's rows hold from the instruction behind the one that changes them") {
    Tables tables;
    // stp x29, x30, [sp, #-32]!; mov x29, sp; ...; ldp x29, x30, [sp], #32; ret
    tables.instructions = {0x41, 0x0e,      32,        0x80 | 29, 4,  0x80 | 30,
                           3,                                              // +4: CFA sp+32, saved
                           0x41, 0x0d,      29,                            // +8: CFA x29+32
                           0x48, 0xc0 | 30, 0xc0 | 29, 0x0c,      31, 0};  // +40: as at the start
    for (const std::uint64_t offset : {0U, 40U, 60U}) {
        const FrameRule rule = tables.rule(offset);
        CHECK(rule.cfa_base == FrameRule::Base::sp);
        CHECK(rule.cfa_offset == 0);
        CHECK(same(rule.return_address, in_register));
        CHECK(same(rule.frame_pointer, in_register));
    }
    for (const std::uint64_t offset : {4U, 8U, 36U}) {
        const FrameRule rule = tables.rule(offset);
        CHECK(rule.cfa_base == (offset == 4 ? FrameRule::Base::sp : FrameRule::Base::fp));
        CHECK(rule.cfa_offset == 32);
        CHECK(same(rule.frame_pointer, at_offset, -32));
        CHECK(same(rule.return_address, at_offset, -24));
    }
}

TEST_CASE("pcs outside of every function have no entry") {
    Tables tables;
    FrameRule rule;
    CHECK(tables.find(std::uint64_t{0} - 4, rule) == CfiStatus::no_entry);
    CHECK(tables.find(60, rule) == CfiStatus::found);
    CHECK(tables.find(64, rule) == CfiStatus::no_entry);
    CHECK(UnwindTables().find(code_at, rule) == CfiStatus::no_entry);
    CHECK(UnwindTables({}, 0).header_status() == CfiStatus::no_entry);
}

TEST_CASE("remembered rows come back whole, the CFA too, one inside the other") {
    Tables tables;
    tables.instructions = {0x0e, 16,   0x0a, 0x80 | 30, 1, 0x0a, 0x0d, 29,  // two remembered
                           0x41, 0x0b,                                      // +4
                           0x41, 0x0b};                                     // +8
    CHECK(tables.rule(0).cfa_base == FrameRule::Base::fp);
    CHECK(tables.rule(4).cfa_base == FrameRule::Base::sp);
    CHECK(same(tables.rule(4).return_address, at_offset, -8));
    CHECK(same(tables.rule(8).return_address, in_register));
    CHECK(tables.rule(8).cfa_offset == 16);
}

TEST_CASE("restore goes back to what the CIE says, not to the register") {
    Tables tables;
    tables.cie_instructions = {0x0c, 31, 16, 0x80 | 30, 2};
    tables.instructions = {0x08, 30, 0x41, 0xc0 | 30, 0x41, 0x07, 30};
    CHECK(same(tables.rule(0).return_address, in_register));
    CHECK(same(tables.rule(4).return_address, at_offset, -16));
    CHECK(same(tables.rule(8).return_address, undefined));
}

TEST_CASE("what is not evaluated is refused where it matters, and skipped where it does not") {
    Tables tables;
    FrameRule rule;
    SECTION("an unknown instruction") {
        tables.instructions = {0x3f};
        CHECK(tables.find(0, rule) == CfiStatus::unsupported);
    }
    SECTION("an unknown instruction behind the pc") {
        tables.instructions = {0x42, 0x3f};
        CHECK(tables.find(4, rule) == CfiStatus::found);
        CHECK(tables.find(8, rule) == CfiStatus::unsupported);
    }
    SECTION("an expression for the CFA, until it is defined otherwise") {
        tables.instructions = {0x0f, 2, 0x8f, 0, 0x41, 0x0c, 31, 16};
        CHECK(tables.find(0, rule) == CfiStatus::unsupported);
        CHECK(tables.find(4, rule) == CfiStatus::found);
    }
    SECTION("a CFA in a register the walk does not know") {
        tables.instructions = {0x0c, 19, 16};
        CHECK(tables.find(0, rule) == CfiStatus::unsupported);
    }
    SECTION("other registers' rules") {
        tables.instructions = {0x10, 19, 2, 0x8f, 0, 0x09, 20, 21, 0x80 | 22, 9, 0x16, 23, 1, 0};
        CHECK(tables.find(0, rule) == CfiStatus::found);
        CHECK(same(rule.return_address, in_register));
    }
    SECTION("the return address in another register") {
        tables.instructions = {0x09, 30, 19};
        CHECK(tables.find(0, rule) == CfiStatus::found);
        CHECK(same(rule.return_address, elsewhere));
    }
    SECTION("more rows remembered than there is room for") {
        tables.instructions = std::vector<std::uint8_t>(5, 0x0a);
        CHECK(tables.find(0, rule) == CfiStatus::unsupported);
    }
    SECTION("a row restored that was never remembered") {
        tables.instructions = {0x0b};
        CHECK(tables.find(0, rule) == CfiStatus::malformed);
    }
    SECTION("another return address column") {
        tables.return_column = 19;
        CHECK(tables.find(0, rule) == CfiStatus::unsupported);
        CHECK(tables.find(64, rule) == CfiStatus::no_entry);
    }
    SECTION("another CIE version") {
        tables.version = 4;
        CHECK(tables.find(0, rule) == CfiStatus::unsupported);
    }
    SECTION("an unknown augmentation") {
        tables.augmentation = {'z', 'Q', 'R', 0};
        CHECK(tables.find(0, rule) == CfiStatus::unsupported);
    }
    SECTION("instructions that end in the middle of one") {
        tables.instructions = {0, 0, 0, 0x41, 0x0c, 31, 0x80};
        CHECK(tables.find(0, rule) == CfiStatus::found);
        CHECK(tables.find(4, rule) == CfiStatus::malformed);
    }
}

TEST_CASE("the augmentation of code with personality routine and signed addresses is read over") {
    Tables tables;
    tables.augmentation = {'z', 'P', 'L', 'R', 'S', 'B', 0};
    tables.augmentation_data = {0x9b, 1, 2, 3, 4, 0x1b, 0x1b};
    tables.instructions = {0x2d, 0x0e, 16};
    CHECK(tables.rule(0).cfa_offset == 16);
}

TEST_CASE("a cut table gives an error or the whole table's answer, wherever it is cut") {
    Tables tables;
    tables.instructions = {0x41, 0x0e, 32, 0x80 | 29, 4, 0x80 | 30, 3, 0x41, 0x0d, 29};
    const auto whole = tables.bytes();
    const FrameRule right = tables.rule(8);
    std::size_t found = 0;
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<long>(size));
        FrameRule rule;
        const CfiStatus status = UnwindTables(cut, tables_at).find(code_at + 8, rule);
        if (status == CfiStatus::found) {
            ++found;
            CHECK(rule.cfa_offset == right.cfa_offset);
            CHECK(same(rule.return_address, at_offset, right.return_address.offset));
        }
    }
    // Only the four bytes that end .eh_frame are not needed.
    CHECK(found == 4);
}

TEST_CASE("no byte of the tables is trusted") {
    Tables tables;
    tables.augmentation = {'z', 'P', 'L', 'R', 0};
    tables.augmentation_data = {0x9b, 1, 2, 3, 4, 0x1b, 0x1b};
    tables.instructions = {0x41, 0x0e, 32, 0x80 | 29, 4, 0x0a, 0x02, 3, 0x0f, 1, 0, 0x0b, 0x0d, 29};
    const auto whole = tables.bytes();
    std::mt19937 random(7);
    std::size_t answers[4] = {};
    for (int n = 0; n < 200'000; ++n) {
        // A copy of exactly the size, so that a sanitizer sees the first byte read behind it.
        std::vector<std::byte> damaged = whole;
        for (int k = 0; k < 1 + n % 3; ++k)
            damaged[random() % damaged.size()] = static_cast<std::byte>(random());
        FrameRule rule;
        const CfiStatus status =
            UnwindTables(damaged, tables_at).find(code_at + random() % 72, rule);
        ++answers[static_cast<int>(status)];
    }
    for (const std::size_t count : answers)
        CHECK(count > 0);
}

TEST_CASE("the function is found among many") {
    // A header alone, whose entries all name descriptions outside: only the search is looked at.
    std::vector<std::uint32_t> words{0x3b031b01, 0, 0};
    constexpr std::uint32_t count = 1000;
    words[2] = count;
    for (std::uint32_t n = 0; n < count; ++n) {
        words.push_back(0x1000 + n * 64);
        words.push_back(0x7fffffff);
    }
    const UnwindTables tables(std::as_bytes(std::span(words)), tables_at);
    REQUIRE(tables.function_count() == count);
    CHECK(tables.function_start(0) == tables_at + 0x1000);
    CHECK(tables.function_start(count - 1) == tables_at + 0x1000 + (count - 1) * 64);
    FrameRule rule;
    CHECK(tables.find(tables_at + 0xfff, rule) == CfiStatus::no_entry);
    CHECK(tables.find(tables_at + 0x1000, rule) == CfiStatus::malformed);
}
