#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/failure.hpp"

namespace tools {

/// All bytes of a file. - is standard input.
Expected<std::vector<std::byte>> read_file(const std::string& path);

/// Writes a file that is there completely or, after a failure or a crash, not at all. - is standard
/// output.
std::optional<Failure> write_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace tools
