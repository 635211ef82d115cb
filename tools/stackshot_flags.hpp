#pragma once

#include <cstdint>
#include <string>

#include "tools/failure.hpp"

namespace tools {

/// The STACKSHOT_* flags that `text` names: numbers (0x... or decimal) and names, with or without
/// STACKSHOT_ in front and in any case, joined by | or commas.
Expected<std::uint64_t> parse_stackshot_flags(const std::string& text);

}  // namespace tools
