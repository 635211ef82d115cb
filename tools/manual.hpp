#pragma once

#include <string>

#include "tools/verb_description.hpp"

namespace tools {

/// The manual page, section 1, as roff with the man macros (man(7)).
std::string manual_page(const ProgramDescription& program);

}  // namespace tools
