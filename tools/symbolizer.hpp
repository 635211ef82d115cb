#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/failure.hpp"

namespace tools {

/// A place in the source, as far as it is known.
struct SourceFrame {
    std::string function{};  ///< qualified, without parameters; empty: unknown
    std::string file{};      ///< from the root of the source tree; empty: unknown
    unsigned line = 0;       ///< 0: unknown
    bool inlined = false;    ///< inlined into the next frame
};

/// What an address is the address of.
struct Symbol {
    std::string name{};
    std::uint64_t offset = 0;  ///< from its start
    bool function = false;     ///< code; otherwise data
};

/// Names for addresses of one program.
class Symbolizer {
  public:
    virtual ~Symbolizer() = default;
    /// The functions that are at work at the instruction `address` lies in: innermost first, the
    /// last one not inlined. Empty: unknown.
    virtual const std::vector<SourceFrame>& frames(std::uint64_t address) = 0;
    /// The symbol `address` lies in.
    virtual std::optional<Symbol> symbol(std::uint64_t address) = 0;
    /// The identifier of the GNU build-id note; empty if there is none.
    virtual const std::vector<std::uint8_t>& build_id() const = 0;
};

/// A Symbolizer over the DWARF and the symbol table of an ELF file, at the addresses it is linked
/// at.
Expected<std::unique_ptr<Symbolizer>> open_elf(const std::string& path);

/// "namespace::function" of a demangled name: neither parameters nor return type.
std::string without_parameters(std::string_view demangled);

}  // namespace tools
