#pragma once

namespace tools {

/// Does what the arguments of main() say; returns the exit status (failure.hpp).
int run_command_line(int argc, char** argv);

}  // namespace tools
