#pragma once

#include <string>

#include "tools/verb_description.hpp"

namespace tools {

/// Completion of the command line in bash: a script that bash-completion loads on demand, or a
/// ~/.bashrc sources. Needs nothing of bash-completion.
std::string bash_completion(const ProgramDescription& program);
/// The same for zsh: the file _stackshot of a directory in fpath.
std::string zsh_completion(const ProgramDescription& program);

}  // namespace tools
