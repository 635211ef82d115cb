#include "tools/command_line.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tools/failure.hpp"

namespace tools {

namespace {

/// CLI11 takes -1 for the largest number there is.
CLI::Validator without_sign() {
    return CLI::Validator(
        [](std::string& text) {
            return text.starts_with('-') ? text + " is negative" : std::string();
        },
        "");
}

}  // namespace

// A check's own description would stand in the help behind the value's name.

Option& Option::show_default() {
    option_->capture_default_str();
    return *this;
}

Option& Option::range(unsigned lowest, unsigned highest) {
    option_->check(CLI::Range(lowest, highest).description(""));
    return *this;
}

Option& Option::one_of(const std::vector<std::string>& values) {
    option_->check(CLI::IsMember(values).description(""));
    return *this;
}

Option& Option::size() {
    // What is added last comes first.
    option_->transform(CLI::AsSizeValue(false).description(""))->transform(without_sign());
    return *this;
}

Option& Option::excludes(const Option& other) {
    option_->excludes(other.option_);
    return *this;
}

void Verb::argument(const char* name, std::string& value, const char* help) {
    app_->add_option(name, value, help)->type_name("")->required();
}

template <typename T>
Option Verb::option(const char* names, const char* value_name, T& value, const char* help) {
    CLI::Option* option = app_->add_option(names, value, help)->type_name(value_name);
    option->allow_extra_args(false);
    if constexpr (std::is_unsigned_v<T> || std::is_same_v<T, std::optional<unsigned>>)
        option->check(without_sign());
    return Option(*option);
}
template Option Verb::option(const char*, const char*, int&, const char*);
template Option Verb::option(const char*, const char*, unsigned&, const char*);
template Option Verb::option(const char*, const char*, std::uint64_t&, const char*);
template Option Verb::option(const char*, const char*, std::optional<unsigned>&, const char*);
template Option Verb::option(const char*, const char*, std::string&, const char*);
template Option Verb::option(const char*, const char*, std::vector<std::string>&, const char*);

Option Verb::flag(const char* names, bool& value, const char* help) {
    return Option(*app_->add_flag(names, value, help));
}

void Verb::details(const std::string& text) {
    app_->footer(text + exit_status_help);
}

void Verb::action(Action action) {
    app_->callback([chosen = chosen_, action = std::move(action)] { *chosen = action; });
}

CommandLine::CommandLine(const char* description, const char* version)
    : app_(std::make_unique<CLI::App>(description, "stackshot")) {
    app_->set_version_flag("--version", version);
    app_->footer(std::string("\n") + exit_status_help);
    app_->require_subcommand(1);
}

CommandLine::~CommandLine() = default;

Verb CommandLine::verb(const char* name, const char* summary) {
    return Verb(*app_->add_subcommand(name, summary), chosen_);
}

int CommandLine::run(int argc, char** argv) {
    try {
        app_->parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app_->exit(error) == 0 ? exit_complete : exit_usage;
    }
    return chosen_();
}

}  // namespace tools
