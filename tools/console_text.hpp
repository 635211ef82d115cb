#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tools {

/// What came over a line besides frames, fit to be shown: noise of a strange or damaged line must
/// not steer the terminal, so whatever is neither printable ASCII nor a line feed or tab is escaped
/// as \xNN. Carriage returns are left out. `backspaces`: they are kept, for who edits a line.
std::string console_text(std::span<const std::byte> bytes, bool backspaces = false);

}  // namespace tools
