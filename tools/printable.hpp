#pragma once

#include <string>
#include <string_view>

namespace tools {

/// `text` with every control character but tab (and, if told, line feed) as \xNN: text of unknown
/// origin must not steer the terminal. Carriage returns are left out.
std::string printable(std::string_view text, bool keep_line_feeds = false);

}  // namespace tools
