#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

namespace tools {

/// Appends what fmt::format() makes of the arguments. (fmt::format_to() to a string would compile
/// the library's formatting into every file that calls it.)
template <typename... Arguments>
void append(std::string& text, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text += fmt::format(format, std::forward<Arguments>(arguments)...);
}

}  // namespace tools
