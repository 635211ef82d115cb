#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>

#include "tools/commands.hpp"
#include "tools/input.hpp"
#include "tools/installation.hpp"
#include "tools/report.hpp"
#include "tools/snapshot.hpp"
#include "tools/symbolizer.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Shows a stackshot as text, with symbolized stacks";
constexpr const char* details =
    "\nWhat the CPUs were doing, then every task, its threads with state, priority and times, and\n"
    "the stack of each: the function it stands in first, then its callers.\n\n";

struct Options {
    InputOptions input{};
    std::string elf{};
    std::string color = "auto";
    ReportOptions report{};
};

bool wants_color(const std::string& choice) {
    if (choice != "auto")
        return choice == "always";
    const char* const no_color = std::getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
}

int report_buffer(const Options& options, std::span<const std::byte> buffer) {
    const std::string& file = options.input.file;
    const Snapshot snapshot = read_snapshot(buffer);

    ExitStatus status = exit_complete;
    ReportOptions shown = options.report;
    std::unique_ptr<Symbolizer> symbols;
    if (!options.elf.empty()) {
        auto opened = open_elf(options.elf);
        if (!opened.ok())
            return report_failure(opened.failure());
        symbols = std::move(opened.value());
        switch (compare_build_id(snapshot, *symbols)) {
            case BuildIdMatch::match:
                shown.symbols_from = options.elf;
                break;
            case BuildIdMatch::mismatch:
                say("the capture is of the kernel with build-id {}, {} is {}: addresses only",
                    hexadecimal(snapshot.kernel->uuid), options.elf,
                    hexadecimal(symbols->build_id()));
                symbols.reset();
                status = exit_wrong_symbols;
                break;
            case BuildIdMatch::unknown:
                say("{} tells no build-id: addresses only", snapshot.kernel ? options.elf : file);
                symbols.reset();
                status = exit_wrong_symbols;
                break;
        }
    }

    const std::string text = report(snapshot, symbols.get(), shown);
    std::fwrite(text.data(), 1, text.size(), stdout);
    for (const std::string& problem : snapshot.problems)
        say("{}: {}", file, problem);
    if (!snapshot.problems.empty())
        return snapshot.tasks.empty() ? exit_failure : exit_damaged;
    return status;
}

int report_file(Options& options) {
    const auto opened = options.input.open();
    if (!opened.ok())
        return report_failure(opened.failure());
    const Input& input = opened.value();
    for (const std::string& text : input.problems())
        say("{}: {}", options.input.file, text);
    if (options.elf.empty())
        options.elf = find_companion("kernel.elf").value_or("");
    if (options.elf.empty())
        say("no kernel.elf beside this program and none named with --elf: addresses only");
    options.report.color = wants_color(options.color);

    std::optional<int> status;
    for (const Input::Buffer& buffer : input.buffers()) {
        const int next = report_buffer(options, buffer.bytes);
        if (!status || status == next)
            status = next;
        else
            status = exit_damaged;
    }
    if (!input.problems().empty() && status == exit_complete)
        status = exit_damaged;
    return status.value_or(exit_failure);
}

}  // namespace

void add_report_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("report", summary);
    add_input_options(verb, options->input);
    verb.option("--elf", "FILE", options->elf,
                "The kernel it was taken from, for names and lines; used only if it has the "
                "capture's build-id [kernel.elf beside this program's build]");
    verb.flag("--brief", options->report.brief, "One line a thread, without stacks");
    verb.flag("--addresses", options->report.addresses, "Show the address of each frame");
    verb.option("--color", "WHEN", options->color, "auto, always or never")
        .one_of({"auto", "always", "never"})
        .show_default();
    verb.details(details);
    verb.action([options] { return report_file(*options); });
}

}  // namespace tools
