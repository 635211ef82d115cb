// Prints what stackshot::UnwindTables answers for every instruction of an AArch64 ELF file, one
// line each: `PC CFA X29 X30`, CFA as `sp+N` or `x29+N`, a register as `u` (in the register), `c+N`
// (at CFA + N) or `n` (undefined); or `PC none|malformed|unsupported`.
#include <elf.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "stackshot/cfi.hpp"

using namespace stackshot;

namespace {

template <typename T>
T at(const std::vector<char>& file, std::uint64_t offset) {
    T value{};
    if (offset + sizeof(T) > file.size()) {
        std::fprintf(stderr, "cfi_rows: file too short\n");
        std::exit(1);
    }
    std::memcpy(&value, file.data() + offset, sizeof(T));
    return value;
}

std::string slot(const FrameRule::Slot& slot) {
    switch (slot.saved) {
        case FrameRule::Saved::in_register:
            return "u";
        case FrameRule::Saved::at_offset:
            return (slot.offset < 0 ? "c-" : "c+") + std::to_string(std::abs(slot.offset));
        case FrameRule::Saved::undefined:
            return "n";
        case FrameRule::Saved::elsewhere:
            break;
    }
    return "?";
}

void print_row(const UnwindTables& tables, std::uint64_t pc) {
    FrameRule rule;
    switch (tables.find(pc, rule)) {
        case CfiStatus::found:
            std::printf("%016" PRIx64 " %s+%" PRId64 " %s %s\n", pc,
                        rule.cfa_base == FrameRule::Base::sp ? "sp" : "x29", rule.cfa_offset,
                        slot(rule.frame_pointer).c_str(), slot(rule.return_address).c_str());
            return;
        case CfiStatus::no_entry:
            std::printf("%016" PRIx64 " none\n", pc);
            return;
        case CfiStatus::malformed:
            std::printf("%016" PRIx64 " malformed\n", pc);
            return;
        case CfiStatus::unsupported:
            std::printf("%016" PRIx64 " unsupported\n", pc);
            return;
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: cfi_rows ELF\n");
        return 2;
    }
    std::ifstream stream(argv[1], std::ios::binary);
    const std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
    const auto header = at<Elf64_Ehdr>(file, 0);
    const auto section = [&](unsigned index) {
        return at<Elf64_Shdr>(file, header.e_shoff + index * sizeof(Elf64_Shdr));
    };
    const Elf64_Shdr names = section(header.e_shstrndx);
    std::optional<Elf64_Shdr> lookup, frames;
    std::vector<Elf64_Shdr> code;
    for (unsigned n = 0; n < header.e_shnum; ++n) {
        const Elf64_Shdr s = section(n);
        const std::string name(file.data() + names.sh_offset + s.sh_name);
        if (name == ".eh_frame_hdr")
            lookup = s;
        if (name == ".eh_frame")
            frames = s;
        if ((s.sh_flags & SHF_EXECINSTR) != 0)
            code.push_back(s);
    }
    if (!lookup || !frames || frames->sh_addr < lookup->sh_addr ||
        frames->sh_addr - lookup->sh_addr != frames->sh_offset - lookup->sh_offset) {
        std::fprintf(stderr, "cfi_rows: no .eh_frame_hdr followed by .eh_frame\n");
        return 1;
    }
    const auto size = frames->sh_addr + frames->sh_size - lookup->sh_addr;
    const UnwindTables tables(std::as_bytes(std::span(file)).subspan(lookup->sh_offset, size),
                              lookup->sh_addr);
    if (tables.header_status() != CfiStatus::found) {
        std::fprintf(stderr, "cfi_rows: unusable .eh_frame_hdr\n");
        return 1;
    }
    for (const Elf64_Shdr& s : code) {
        for (std::uint64_t pc = s.sh_addr; pc < s.sh_addr + s.sh_size; pc += 4)
            print_row(tables, pc);
    }
}
