#pragma once

namespace tools {

/// What the program ends with. Part of its interface: --help tells them, scripts rely on them.
enum ExitStatus : int {
    exit_complete = 0,
    exit_failure = 1,
    exit_usage = 2,
    exit_damaged = 3,        ///< the input is damaged or incomplete, but something was salvaged
    exit_no_target = 4,      ///< nothing answers, or not in time
    exit_wrong_symbols = 5,  ///< the ELF file is not the one the capture was taken from
    exit_deadlock = 10,      ///< analyze found one
    exit_interrupted = 130,  ///< Ctrl-C, as a shell reports it
};

/// The text of --help about them.
inline constexpr const char* exit_status_help =
    "Exit status:\n"
    "  0    complete\n"
    "  1    failure\n"
    "  2    wrong usage\n"
    "  3    the input is damaged or incomplete; what could be salvaged was\n"
    "  4    no target, or it did not answer in time\n"
    "  5    the symbols of --elf do not match the capture's build-id; addresses only\n"
    "  10   analyze found a deadlock\n"
    "  130  interrupted\n"
    "Data goes to standard output, everything else to standard error.";

}  // namespace tools
