#include "tools/command_line.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
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
    description().default_value = option_->get_default_str();
    return *this;
}

Option& Option::range(unsigned lowest, unsigned highest) {
    option_->check(CLI::Range(lowest, highest).description(""));
    return *this;
}

Option& Option::one_of(const std::vector<std::string>& values) {
    option_->check(CLI::IsMember(values).description(""));
    description().values = values;
    return *this;
}

Option& Option::size() {
    // What is added last comes first.
    option_->transform(CLI::AsSizeValue(false).description(""))->transform(without_sign());
    return *this;
}

Option& Option::milliseconds() {
    const std::map<std::string, unsigned> units{{"ms", 1}, {"s", 1000}, {"min", 60'000}};
    option_
        ->transform(
            CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::CASE_SENSITIVE).description(""))
        ->transform(without_sign());
    return *this;
}

Option& Option::excludes(const Option& other) {
    option_->excludes(other.option_);
    return *this;
}

void Verb::argument(const char* name, std::string& value, const char* help,
                    const std::vector<std::string>& values) {
    CLI::Option* option = app_->add_option(name, value, help)->type_name("")->required();
    if (!values.empty())
        option->check(CLI::IsMember(values).description(""));
    description_->arguments.push_back({name, help, values});
}

void Verb::words(const char* name, std::vector<std::string>& words, const char* help,
                 const std::vector<std::string>& values) {
    app_->add_option(name, words, help)->type_name("");
    description_->arguments.push_back({"[" + std::string(name) + "]", help, values});
}

Option Verb::described(CLI::Option& option, const char* value_name, const char* help) {
    OptionDescription& description = description_->options.emplace_back();
    for (const std::string& name : option.get_snames())
        description.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames())
        description.names.push_back("--" + name);
    description.value = value_name;
    description.help = help;
    return Option(option, *description_);
}

template <typename T>
Option Verb::option(const char* names, const char* value_name, T& value, const char* help) {
    CLI::Option* option = app_->add_option(names, value, help)->type_name(value_name);
    option->allow_extra_args(false);
    if constexpr (std::is_unsigned_v<T> || std::is_same_v<T, std::optional<unsigned>>)
        option->check(without_sign());
    Option result = described(*option, value_name, help);
    description_->options.back().repeatable = std::is_same_v<T, std::vector<std::string>>;
    return result;
}
template Option Verb::option(const char*, const char*, int&, const char*);
template Option Verb::option(const char*, const char*, unsigned&, const char*);
template Option Verb::option(const char*, const char*, std::uint64_t&, const char*);
template Option Verb::option(const char*, const char*, std::optional<unsigned>&, const char*);
template Option Verb::option(const char*, const char*, std::string&, const char*);
template Option Verb::option(const char*, const char*, std::vector<std::string>&, const char*);

Option Verb::flag(const char* names, bool& value, const char* help) {
    return described(*app_->add_flag(names, value, help), "", help);
}

void Verb::details(const std::string& text) {
    app_->footer(text + exit_status_help);
    description_->details = text;
}

void Verb::action(Action action) {
    app_->callback([chosen = chosen_, action = std::move(action)] { *chosen = action; });
}

CommandLine::CommandLine(const char* description, const char* version)
    : app_(std::make_unique<CLI::App>(description, "stackshot")),
      version_(version),
      summary_(description) {
    app_->set_version_flag("--version", version);
    app_->footer(std::string("\n") + exit_status_help);
    app_->require_subcommand(1);
}

CommandLine::~CommandLine() = default;

Verb CommandLine::verb(const char* name, const char* summary) {
    VerbDescription& description = verbs_.emplace_back();
    description.name = name;
    description.summary = summary;
    return Verb(*app_->add_subcommand(name, summary), description, chosen_);
}

ProgramDescription CommandLine::description() const {
    return {version_, summary_, {verbs_.begin(), verbs_.end()}};
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
