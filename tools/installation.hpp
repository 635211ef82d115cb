#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tools {

/// Where the file `name` (kernel8.img, kernel.elf) that goes with this program is: in the build
/// folder above it, or in the data folder it was installed with.
std::optional<std::string> find_companion(std::string_view name);

}  // namespace tools
