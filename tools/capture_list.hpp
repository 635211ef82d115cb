#pragma once

#include <list>
#include <string>
#include <vector>

#include "tools/commands.hpp"
#include "tools/export/export.hpp"
#include "tools/input.hpp"
#include "tools/kernel_symbols.hpp"

namespace tools {

/// The captures of one or more files as snapshots with symbols. A delta stackshot is completed from
/// what comes before it. What is wrong is said as it is found.
class CaptureList {
  public:
    /// The options of the file and of the symbols outlive this. Requires symbols.open().
    explicit CaptureList(KernelSymbols& symbols) : symbols_(symbols) {}

    /// Adds all captures of the file; or only the `only`-th, from 1.
    std::optional<Failure> add(const InputOptions& file, std::optional<unsigned> only = {});
    /// Adds all captures of a file that is in memory.
    std::optional<Failure> add(std::vector<std::byte> bytes, const std::string& name);

    const std::vector<ExportedCapture>& captures() const { return captures_; }
    /// What the program ends with, if nothing else goes wrong.
    ExitStatus status() const;

  private:
    std::optional<Failure> add(Expected<Input> opened, const InputOptions& file,
                               std::optional<unsigned> only = {});
    /// Reads the buffer of `capture`.
    void add(ExportedCapture capture);

    KernelSymbols& symbols_;
    /// The captures are views of them.
    std::list<Input> inputs_{};
    std::vector<ExportedCapture> captures_{};
    bool damaged_ = false;
    bool salvaged_ = false;
};

}  // namespace tools
