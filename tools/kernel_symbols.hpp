#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tools/command_line.hpp"
#include "tools/failure.hpp"
#include "tools/snapshot.hpp"
#include "tools/symbolizer.hpp"

namespace tools {

/// Whether `symbols` are those of the kernel the capture was taken from, by its build-id.
enum class BuildIdMatch { match, mismatch, unknown };
BuildIdMatch compare_build_id(const Snapshot& snapshot, const Symbolizer& symbols);

/// The symbols that the user named, or those beside the program, for the captures they are of.
class KernelSymbols {
  public:
    /// Adds --elf. This lives until the verb's action has run.
    void add_option(Verb& verb);
    /// Opens the file, if there is one; says if there is none.
    std::optional<Failure> open();

    /// The symbols if they are of the capture's kernel; otherwise nullptr, and what is wrong is
    /// said. `place` is how messages name the capture. Requires open().
    Symbolizer* of(const Snapshot& snapshot, const std::string& place);
    /// Whether symbols that the user named were not those of some capture.
    bool wrong() const { return wrong_; }
    const std::string& file() const { return elf_; }

  private:
    std::string elf_{};
    std::unique_ptr<Symbolizer> symbols_{};
    bool named_ = false;
    bool wrong_ = false;
    std::string said_{};
};

}  // namespace tools
