#pragma once

#include <array>
#include <string_view>

namespace tools {

/// The page of tools/export/page/, whole but for what is between the pieces: title, data, dump and
/// capture. Made by embed.py.
extern const std::array<std::string_view, 5> page_pieces;

}  // namespace tools
