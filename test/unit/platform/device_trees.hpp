#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// Device trees for tests, made by the tools that make real ones.
namespace device_trees {

using Blob = std::vector<std::byte>;

/// The tree QEMU passes with these arguments (`-M virt,...` and so on); empty if there is no QEMU.
std::optional<Blob> qemu(const std::string& machine, const std::string& arguments);

/// Source compiled by dtc; empty if there is no dtc.
std::optional<Blob> compile(const std::string& source);
/// The same for a file of test/data/devicetree.
std::optional<Blob> compile_file(const std::string& name);

}  // namespace device_trees
