#include "tools/symbolizer.hpp"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <unordered_map>

#include "tools/descriptor.hpp"

namespace tools {

namespace {

struct Freer {
    void operator()(void* memory) const { std::free(memory); }
};
struct DwflEnder {
    void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};

std::string readable(const char* mangled) {
    int status = 0;
    const std::unique_ptr<char, Freer> demangled(
        abi::__cxa_demangle(mangled, nullptr, nullptr, &status));
    return status == 0 ? without_parameters(demangled.get()) : std::string(mangled);
}

/// Attribute `name` of the DIE or of the one it is an instance of.
const char* text_attribute(Dwarf_Die& die, unsigned name) {
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr_integrate(&die, name, &attribute));
}

/// The names of the namespaces and classes around the declaration of `die`, each with "::".
std::string scope_prefix(Dwarf_Die die) {
    for (const unsigned link : {DW_AT_abstract_origin, DW_AT_specification}) {
        Dwarf_Attribute attribute;
        Dwarf_Die target;
        if (dwarf_formref_die(dwarf_attr(&die, link, &attribute), &target) != nullptr)
            die = target;
    }
    Dwarf_Die* found = nullptr;
    const int count = dwarf_getscopes_die(&die, &found);
    const std::unique_ptr<Dwarf_Die, Freer> scopes(found);
    std::string prefix;
    for (int i = 1; i < count; ++i) {
        const int tag = dwarf_tag(&found[i]);
        if (tag != DW_TAG_namespace && tag != DW_TAG_class_type && tag != DW_TAG_structure_type)
            continue;
        const char* const name = dwarf_diename(&found[i]);
        prefix = fmt::format("{}::{}", name != nullptr ? name : "(anonymous namespace)", prefix);
    }
    return prefix;
}

std::string function_name(Dwarf_Die& die) {
    if (const char* linkage = text_attribute(die, DW_AT_linkage_name))
        return readable(linkage);
    const char* const name = dwarf_diename(&die);
    return name != nullptr ? scope_prefix(die) + name : "";
}

/// Paths are recorded relative to the root of the source tree, the build folder included.
std::string source_path(Dwarf_Die& unit, const char* file) {
    if (file == nullptr)
        return {};
    std::filesystem::path path(file);
    Dwarf_Attribute attribute;
    const char* const folder = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
    // Compilers differ in whether the name has the folder in front already.
    if (path.is_relative() && folder != nullptr &&
        !std::string_view(file).starts_with(std::string(folder) + "/"))
        path = folder / path;
    return path.lexically_normal().string();
}

class ElfSymbolizer final : public Symbolizer {
  public:
    ElfSymbolizer(std::unique_ptr<Dwfl, DwflEnder> dwfl, Dwfl_Module* module)
        : dwfl_(std::move(dwfl)), module_(module) {
        const unsigned char* bits = nullptr;
        GElf_Addr address = 0;
        if (const int size = dwfl_module_build_id(module_, &bits, &address); size > 0)
            build_id_.assign(bits, bits + size);
    }

    const std::vector<SourceFrame>& frames(std::uint64_t address) override {
        const auto [place, fresh] = frames_.try_emplace(address);
        if (fresh)
            place->second = find_frames(address);
        return place->second;
    }

    std::optional<Symbol> symbol(std::uint64_t address) override {
        GElf_Off offset = 0;
        GElf_Sym symbol{};
        const char* const name =
            dwfl_module_addrinfo(module_, address, &offset, &symbol, nullptr, nullptr, nullptr);
        if (name == nullptr)
            return std::nullopt;
        // Symbols without a size say nothing about what lies behind them.
        if (offset != 0 && symbol.st_size != 0 && offset >= symbol.st_size)
            return std::nullopt;
        return Symbol{readable(name), offset, GELF_ST_TYPE(symbol.st_info) == STT_FUNC};
    }

    const std::vector<std::uint8_t>& build_id() const override { return build_id_; }

  private:
    std::vector<SourceFrame> find_frames(std::uint64_t address) {
        std::vector<SourceFrame> frames;
        Dwarf_Addr bias = 0;
        Dwarf_Die* const unit = unit_of(address, bias);
        if (unit != nullptr)
            frames = frames_of_unit(*unit, address - bias);
        if (frames.empty())
            frames.emplace_back();
        // Assembly has lines, but its functions are in the symbol table only.
        if (frames.back().function.empty()) {
            if (const auto found = symbol(address))
                frames.back().function = found->name;
        }
        if (unit != nullptr)
            set_line(frames.front(), *unit, address - bias);
        if (frames.back().function.empty() && frames.front().file.empty())
            frames.clear();
        return frames;
    }

    Dwarf_Die* unit_of(std::uint64_t address, Dwarf_Addr& bias) {
        if (Dwarf_Die* unit = dwfl_module_addrdie(module_, address, &bias))
            return unit;
        // Without .debug_aranges the units themselves tell.
        Dwarf_Die* unit = nullptr;
        while ((unit = dwfl_module_nextcu(module_, unit, &bias)) != nullptr)
            if (dwarf_haspc(unit, address - bias) > 0)
                return unit;
        return nullptr;
    }

    static std::vector<SourceFrame> frames_of_unit(Dwarf_Die& unit, Dwarf_Addr pc) {
        std::vector<SourceFrame> frames;
        Dwarf_Die* found = nullptr;
        const int count = dwarf_getscopes(&unit, pc, &found);
        const std::unique_ptr<Dwarf_Die, Freer> scopes(found);
        int innermost = 0;
        while (innermost < count && !is_function(found[innermost]))
            ++innermost;
        if (innermost >= count)
            return frames;
        // Above an inlined function, getscopes tells where its source stands; the DIE's own parents
        // tell what it was inlined into.
        Dwarf_Die* parents = nullptr;
        const int parent_count = dwarf_getscopes_die(&found[innermost], &parents);
        const std::unique_ptr<Dwarf_Die, Freer> enclosing(parents);
        std::string call_file;
        unsigned call_line = 0;
        for (int i = 0; i < parent_count; ++i) {
            Dwarf_Die& die = parents[i];
            if (!is_function(die))
                continue;
            const bool inlined = dwarf_tag(&die) == DW_TAG_inlined_subroutine;
            frames.push_back({function_name(die), call_file, call_line, inlined});
            if (!inlined)
                break;
            call_file = call_file_of(die, unit);
            call_line = static_cast<unsigned>(number_attribute(die, DW_AT_call_line));
        }
        return frames;
    }

    static std::string call_file_of(Dwarf_Die& inlined, Dwarf_Die& unit) {
        Dwarf_Files* files = nullptr;
        std::size_t count = 0;
        const std::uint64_t index = number_attribute(inlined, DW_AT_call_file);
        if (dwarf_getsrcfiles(&unit, &files, &count) != 0 || index >= count)
            return {};
        return source_path(unit, dwarf_filesrc(files, index, nullptr, nullptr));
    }

    /// 0 if it is not there.
    static std::uint64_t number_attribute(Dwarf_Die& die, unsigned name) {
        Dwarf_Attribute attribute;
        Dwarf_Word value = 0;
        if (dwarf_formudata(dwarf_attr(&die, name, &attribute), &value) != 0)
            return 0;
        return value;
    }

    static bool is_function(Dwarf_Die& die) {
        const int tag = dwarf_tag(&die);
        return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
    }

    static void set_line(SourceFrame& frame, Dwarf_Die& unit, Dwarf_Addr pc) {
        Dwarf_Line* const line = dwarf_getsrc_die(&unit, pc);
        int number = 0;
        if (line == nullptr || dwarf_lineno(line, &number) != 0 || number <= 0)
            return;
        frame.file = source_path(unit, dwarf_linesrc(line, nullptr, nullptr));
        frame.line = static_cast<unsigned>(number);
    }

    std::unique_ptr<Dwfl, DwflEnder> dwfl_;
    Dwfl_Module* module_;
    std::vector<std::uint8_t> build_id_{};
    std::unordered_map<std::uint64_t, std::vector<SourceFrame>> frames_{};
};

}  // namespace

Expected<std::unique_ptr<Symbolizer>> open_elf(const std::string& path) {
    Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid())
        return system_failure("opening " + path, errno);
    static const Dwfl_Callbacks callbacks{dwfl_build_id_find_elf, dwfl_standard_find_debuginfo,
                                          dwfl_offline_section_address, nullptr};
    std::unique_ptr<Dwfl, DwflEnder> dwfl(dwfl_begin(&callbacks));
    if (dwfl == nullptr)
        return Failure{fmt::format("reading {}: {}", path, dwfl_errmsg(-1))};
    dwfl_report_begin(dwfl.get());
    // At the addresses of the file itself.
    Dwfl_Module* const module =
        dwfl_report_elf(dwfl.get(), path.c_str(), path.c_str(), fd.get(), 0, true);
    if (module == nullptr)
        return Failure{fmt::format("reading {}: {}", path, dwfl_errmsg(-1))};
    fd.release();  // The module closes it.
    dwfl_report_end(dwfl.get(), nullptr, nullptr);
    return std::unique_ptr<Symbolizer>(std::make_unique<ElfSymbolizer>(std::move(dwfl), module));
}

std::string without_parameters(std::string_view name) {
    // Behind the name: " const", " [clone .isra.0]" and the like.
    const std::size_t last = name.rfind(')');
    std::size_t end = name.size();
    if (last != std::string_view::npos) {
        int depth = 0;
        for (std::size_t i = last + 1; i-- > 0;) {
            depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
            if (depth == 0) {
                end = i;
                break;
            }
        }
        // Parentheses with more of the name behind them are no parameters of it.
        if (end == 0 || name.substr(last + 1).starts_with("::"))
            end = name.size();
        // The first pair of parentheses of operator() is its name.
        if (name.substr(0, end).ends_with("operator") && last == end + 1)
            end = last + 1;
    }
    // A template's name has its return type in front: it ends at the last blank outside brackets.
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i < end; ++i) {
        const char c = name[i];
        if (depth == 0 && name.substr(i, end - i).starts_with("operator") &&
            (i == 0 || name[i - 1] == ':' || name[i - 1] == ' '))
            break;  // What follows may hold anything.
        if (c == '(' || c == '<' || c == '{' || c == '[')
            ++depth;
        else if (c == ')' || c == '>' || c == '}' || c == ']')
            --depth;
        else if (c == ' ' && depth == 0)
            begin = i + 1;
    }
    return std::string(name.substr(begin, end - begin));
}

}  // namespace tools
