#include <fmt/core.h>

#include "tools/commands.hpp"
#include "tools/manual.hpp"

namespace tools {

void add_manual_command(CommandLine& line) {
    Verb verb = line.verb("manual", "Prints the manual page, as roff");
    verb.details("\n  stackshot manual | man -l -       read it\n\n");
    verb.action([&line] {
        fmt::print("{}", manual_page(line.description()));
        return exit_complete;
    });
}

}  // namespace tools
