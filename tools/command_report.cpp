#include <fmt/core.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/capture_list.hpp"
#include "tools/commands.hpp"
#include "tools/report.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Shows a stackshot as text, with symbolized stacks";
constexpr const char* details =
    "\nWhat the CPUs were doing, then every task, its threads with state, priority and times, and\n"
    "the stack of each: the function it stands in first, then its callers.\n\n";

struct Options {
    InputOptions input{};
    KernelSymbols symbols{};
    std::string format = "text";
    bool json = false;
    std::optional<unsigned> buffer{};
    std::string color = "auto";
    ReportOptions report{};
};

std::string format_list() {
    std::string text = "Formats:\n  text        for people\n";
    for (const ExportFormat& format : export_formats())
        text += fmt::format("  {:<10}  {}\n", format.name, format.summary);
    return text + '\n';
}

bool wants_color(const std::string& choice) {
    if (choice != "auto")
        return choice == "always";
    const char* const no_color = std::getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
}

int report_file(Options& options) {
    if (const auto failure = options.symbols.open())
        return report_failure(*failure);
    CaptureList list(options.symbols);
    if (const auto failure = list.add(options.input, options.buffer))
        return report_failure(*failure);
    const auto& captures = list.captures();

    FileSink sink(stdout);
    const ExportFormat* const format = find_export_format(options.format);
    if (format != nullptr && format->single && captures.size() > 1) {
        say("{} holds {} captures, and a file of the format {} one: choose it with --buffer",
            options.input.file, captures.size(), format->name);
        return exit_usage;
    }
    if (format != nullptr) {
        format->write(captures, sink);
        return list.status();
    }
    options.report.color = wants_color(options.color);
    for (const ExportedCapture& capture : captures) {
        options.report.symbols_from = capture.symbols_from;
        sink.write(report(capture.snapshot, capture.symbols, options.report));
    }
    return list.status();
}

}  // namespace

void add_report_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("report", summary);
    add_input_options(verb, options->input);
    options->symbols.add_option(verb);
    std::vector<std::string> formats{options->format};
    for (const ExportFormat& format : export_formats())
        formats.emplace_back(format.name);
    verb.option("--format", "FORMAT", options->format, "What to write; see below")
        .one_of(formats)
        .show_default();
    verb.flag("--json", options->json, "The same as --format json");
    verb.option("--buffer", "N", options->buffer, "Only the N-th capture of the file [all]")
        .range(1, UINT_MAX);
    verb.flag("--brief", options->report.brief, "One line a thread, without stacks");
    verb.flag("--addresses", options->report.addresses, "Show the address of each frame");
    verb.option("--color", "WHEN", options->color, "auto, always or never")
        .one_of({"auto", "always", "never"})
        .show_default();
    verb.details(details + format_list());
    verb.action([options] {
        if (options->json)
            options->format = "json";
        return report_file(*options);
    });
}

}  // namespace tools
