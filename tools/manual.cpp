#include "tools/manual.hpp"

#include <string_view>
#include <vector>

#include "tools/append.hpp"
#include "tools/exit_status.hpp"

namespace tools {

namespace {

/// Text that roff takes as it is.
std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (c == '\\')
            result += "\\e";
        else if (c == '-')
            result += "\\-";
        else
            result += c;
    }
    return result;
}

/// One line of the page; a control character at its start is text.
void put_line(std::string& page, std::string_view line) {
    if (line.starts_with('.') || line.starts_with('\''))
        page += "\\&";
    append(page, "{}\n", escaped(line));
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
    }
    return lines;
}

/// Text with blank lines between paragraphs. One that is laid out with spaces stays as it is.
void put_text(std::string& page, std::string_view text, bool& first) {
    const std::vector<std::string_view> lines = lines_of(text);
    for (std::size_t begin = 0; begin < lines.size();) {
        if (lines[begin].empty()) {
            ++begin;
            continue;
        }
        std::size_t end = begin;
        bool laid_out = false;
        for (; end < lines.size() && !lines[end].empty(); ++end)
            laid_out = laid_out || lines[end].find("  ") != std::string_view::npos;
        if (!first)
            page += ".PP\n";
        first = false;
        if (laid_out)
            page += ".nf\n";
        for (; begin < end; ++begin)
            put_line(page, lines[begin]);
        if (laid_out)
            page += ".fi\n";
    }
}

void put_option(std::string& page, const OptionDescription& option) {
    page += ".TP\n";
    for (std::size_t i = 0; i < option.names.size(); ++i) {
        append(page, "{}\\fB{}\\fR", i == 0 ? "" : ", ", escaped(option.names[i]));
        if (!option.value.empty())
            append(page, "{}\\fI{}\\fR", option.names[i].starts_with("--") ? "=" : " ",
                   escaped(option.value));
    }
    page += '\n';
    std::string text = option.help + '.';
    if (!option.values.empty()) {
        text += " One of: ";
        for (std::size_t i = 0; i < option.values.size(); ++i)
            text += (i == 0 ? "" : ", ") + option.values[i];
        text += '.';
    }
    if (!option.default_value.empty())
        text += " Default: " + option.default_value + '.';
    put_line(page, text);
}

void put_verb(std::string& page, const VerbDescription& verb) {
    append(page, ".SS {}\n.B stackshot {}\n", escaped(verb.name), escaped(verb.name));
    if (!verb.options.empty())
        page += ".RI [ options ]\n";
    for (const ArgumentDescription& argument : verb.arguments)
        append(page, ".I {}\n", escaped(argument.name));
    page += ".PP\n";
    put_line(page, verb.summary + '.');
    for (const ArgumentDescription& argument : verb.arguments) {
        append(page, ".TP\n.I {}\n", escaped(argument.name));
        put_line(page, argument.help + '.');
    }
    for (const OptionDescription& option : verb.options)
        put_option(page, option);
    bool first = false;
    put_text(page, verb.details, first);
}

}  // namespace

std::string manual_page(const ProgramDescription& program) {
    std::string page;
    append(
        page,
        ".TH STACKSHOT 1 \"\" \"{}\" \"User Commands\"\n"
        ".SH NAME\nstackshot \\- take stackshots of the unikernel, and show kcdata of any kernel\n"
        ".SH SYNOPSIS\n.B stackshot\n.I command\n.RI [ options ]\n.RI [ arguments ]\n"
        ".SH DESCRIPTION\n",
        escaped(program.version));
    bool first = true;
    put_text(page, program.summary, first);
    page += ".SH COMMANDS\n";
    for (const VerbDescription& verb : program.verbs)
        put_verb(page, verb);
    page += ".SH EXIT STATUS\n";
    std::string_view status = exit_status_help;
    // The section's title says that already.
    status.remove_prefix(status.find('\n') + 1);
    first = true;
    put_text(page, status, first);
    page +=
        ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\n"
        "If set and not empty, reports to a terminal are not coloured unless told to be.\n"
        ".TP\n.B TMPDIR\nWhere temporary files lie; /tmp if it is not set.\n"
        ".SH SEE ALSO\n.BR qemu\\-system\\-aarch64 (1),\n.BR dot (1)\n";
    return page;
}

}  // namespace tools
