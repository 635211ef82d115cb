#pragma once

#include <optional>
#include <string>

#include "tools/exit_status.hpp"
#include "tools/source.hpp"

namespace tools {

struct ConsoleOptions {
    /// Captures that the unikernel sends go here, further ones to NAME-2.EXT and so on.
    std::string output = "stackshot.kcdata";
    /// Every byte that comes goes here; empty: nowhere.
    std::string log{};
    /// Where standard input is no terminal: how many seconds to go on without a word from the
    /// unikernel after its end.
    unsigned linger = 2;
    /// The unikernel is just starting: what is typed waits for its first word.
    bool starting = false;
};

/// Connects standard input and output with a unikernel's console, until Ctrl-] is typed, the line
/// ends, or standard input does. A terminal is raw meanwhile: the unikernel echoes. An Interruption
/// lives.
ExitStatus run_console(Connection& connection, const ConsoleOptions& options);

}  // namespace tools
