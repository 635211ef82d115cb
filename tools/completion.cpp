#include "tools/completion.hpp"

#include <string_view>
#include <vector>

#include "tools/append.hpp"

namespace tools {

namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between = " ") {
    std::string text;
    for (const std::string& word : words) {
        if (!text.empty())
            text += between;
        text += word;
    }
    return text;
}

std::string verb_names(const ProgramDescription& program) {
    std::vector<std::string> names;
    for (const VerbDescription& verb : program.verbs)
        names.push_back(verb.name);
    return joined(names);
}

std::string option_names(const VerbDescription& verb) {
    std::string names = "-h --help";
    for (const OptionDescription& option : verb.options)
        names += ' ' + joined(option.names);
    return names;
}

/// "verb -o|verb --output"
std::string bash_pattern(const VerbDescription& verb, const OptionDescription& option) {
    std::string pattern;
    for (const std::string& name : option.names)
        append(pattern, "{}\"{} {}\"", pattern.empty() ? "" : "|", verb.name, name);
    return pattern;
}

/// What completes a value, as an option of compgen; empty: nothing does.
std::string bash_action(const std::string& value, const std::vector<std::string>& values) {
    if (!values.empty())
        return "-W '" + joined(values) + "'";
    return is_file_value(value) ? "-f" : "";
}

/// Text between single quotes.
std::string zsh_quoted(std::string_view text, std::string_view with_backslash) {
    std::string result;
    for (const char c : text) {
        if (c == '\'')
            result += "'\\''";
        else if (with_backslash.find(c) != std::string_view::npos)
            result += std::string("\\") + c;
        else
            result += c;
    }
    return result;
}

/// What completes a value, as an action of _arguments.
std::string zsh_action(const std::string& value, const std::vector<std::string>& values) {
    if (!values.empty())
        return "(" + joined(values) + ")";
    return is_file_value(value) ? "_files" : "";
}

std::string zsh_option(const OptionDescription& option) {
    const bool flag = option.value.empty();
    std::string spec = option.repeatable ? "'*'" : "";
    if (option.names.size() > 1) {
        if (!option.repeatable)
            append(spec, "'({})'", joined(option.names));
        spec += '{';
    }
    for (std::size_t i = 0; i < option.names.size(); ++i) {
        const bool is_long = option.names[i].starts_with("--");
        append(spec, "{}{}{}", i == 0 ? "" : ",", option.names[i], flag ? "" : is_long ? "=" : "+");
    }
    if (option.names.size() > 1)
        spec += '}';
    append(spec, "'[{}]", zsh_quoted(option.help, "[]\\"));
    if (!flag)
        append(spec, ":{}:{}", zsh_quoted(option.value, ":\\"),
               zsh_action(option.value, option.values));
    return spec + '\'';
}

}  // namespace

std::string bash_completion(const ProgramDescription& program) {
    std::string text =
        "# Completion of stackshot(1) for bash.\n"
        "_stackshot() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb= i\n"
        "    # --option=value is three words.\n"
        "    if [[ $cur == = ]]; then\n"
        "        cur=\n"
        "    elif [[ $prev == = ]]; then\n"
        "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "    fi\n"
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "        if [[ ${COMP_WORDS[i]} != -* ]]; then\n"
        "            verb=${COMP_WORDS[i]}\n"
        "            break\n"
        "        fi\n"
        "    done\n"
        "    COMPREPLY=()\n"
        "    if [[ -z $verb ]]; then\n";
    append(text, "        COMPREPLY=($(compgen -W '{} --help --version' -- \"$cur\"))\n",
           verb_names(program));
    text +=
        "        return\n"
        "    fi\n"
        "    case \"$verb $prev\" in\n";
    for (const VerbDescription& verb : program.verbs) {
        for (const OptionDescription& option : verb.options) {
            if (option.value.empty())
                continue;
            append(text, "    {})\n", bash_pattern(verb, option));
            const std::string action = bash_action(option.value, option.values);
            if (action == "-f")
                text += "        compopt -o filenames\n";
            if (!action.empty())
                append(text, "        COMPREPLY=($(compgen {} -- \"$cur\"))\n", action);
            text += "        return\n        ;;\n";
        }
    }
    text +=
        "    esac\n"
        "    local options= words= files=\n"
        "    case $verb in\n";
    for (const VerbDescription& verb : program.verbs) {
        append(text, "    {})\n        options='{}'\n", verb.name, option_names(verb));
        for (const ArgumentDescription& argument : verb.arguments) {
            if (!argument.values.empty())
                append(text, "        words='{}'\n", joined(argument.values));
            else if (is_file_value(argument.name))
                text += "        files=1\n";
        }
        text += "        ;;\n";
    }
    text +=
        "    esac\n"
        "    if [[ $cur == -* ]]; then\n"
        "        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
        "    elif [[ -n $files ]]; then\n"
        "        compopt -o filenames\n"
        "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
        "    else\n"
        "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
        "    fi\n"
        "}\n"
        "complete -F _stackshot stackshot\n";
    return text;
}

std::string zsh_completion(const ProgramDescription& program) {
    std::string text =
        "#compdef stackshot\n"
        "# Completion of stackshot(1) for zsh.\n"
        "_stackshot() {\n"
        "    local curcontext=$curcontext state line\n"
        "    local -a commands\n"
        "    commands=(\n";
    for (const VerbDescription& verb : program.verbs)
        append(text, "        '{}:{}'\n", verb.name, zsh_quoted(verb.summary, ":\\"));
    text +=
        "    )\n"
        "    _arguments -C '(- *)'{-h,--help}'[Print the help and exit]' \\\n"
        "        '(- *)--version[Print the version and exit]' \\\n"
        "        '1:command:->command' '*::argument:->arguments' && return\n"
        "    case $state in\n"
        "    command) _describe -t commands command commands ;;\n"
        "    arguments)\n"
        "        case $words[1] in\n";
    for (const VerbDescription& verb : program.verbs) {
        append(text, "        {})\n            _arguments '(- *)'{{-h,--help}}'[Print the help]'",
               verb.name);
        for (const OptionDescription& option : verb.options)
            append(text, " \\\n                {}", zsh_option(option));
        std::size_t place = 1;
        for (const ArgumentDescription& argument : verb.arguments)
            append(text, " \\\n                '{}:{}:{}'", place++,
                   zsh_quoted(argument.name, ":\\"), zsh_action(argument.name, argument.values));
        text += "\n            ;;\n";
    }
    text +=
        "        esac\n"
        "        ;;\n"
        "    esac\n"
        "}\n"
        "_stackshot \"$@\"\n";
    return text;
}

}  // namespace tools
