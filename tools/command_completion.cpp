#include <fmt/core.h>

#include <memory>

#include "tools/commands.hpp"
#include "tools/completion.hpp"

namespace tools {

void add_completion_command(CommandLine& line) {
    auto shell = std::make_shared<std::string>();
    Verb verb = line.verb("completion", "Prints the completion of this command line for a shell");
    verb.argument("SHELL", *shell, "bash or zsh", {"bash", "zsh"});
    verb.details(
        "\n  eval \"$(stackshot completion bash)\"                  in ~/.bashrc\n"
        "  stackshot completion zsh > ~/.zfunc/_stackshot       a directory of fpath\n\n");
    verb.action([&line, shell] {
        const ProgramDescription program = line.description();
        fmt::print("{}", *shell == "bash" ? bash_completion(program) : zsh_completion(program));
        return exit_complete;
    });
}

}  // namespace tools
