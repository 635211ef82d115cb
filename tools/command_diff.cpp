#include <cstdio>
#include <memory>

#include "tools/capture_list.hpp"
#include "tools/commands.hpp"
#include "tools/diff.hpp"
#include "tools/diff_text.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Compares two stackshots: threads new, gone, moved, stuck";
constexpr const char* details =
    "\nOf files with several captures, the last counts. A thread is stuck if it has the same stack "
    "in\n"
    "both; what it used in between tells whether it came back there or never left. Idle threads "
    "of\n"
    "CPUs are passed over. A delta is completed from what comes before it: AFTER may be a delta "
    "to\n"
    "BEFORE.\n\n"
    "  stackshot diff a.kcdata b.kcdata\n"
    "  stackshot diff a.kcdata b.kcdata --json | jq '.threads[] | select(.change == "
    "\"stuck\")'\n\n";

struct Options {
    InputOptions before{};
    InputOptions after{};
    KernelSymbols symbols{};
    bool json = false;
};

int diff_files(Options& options) {
    if (const auto failure = options.symbols.open())
        return report_failure(*failure);
    options.after.max_size = options.before.max_size;
    CaptureList list(options.symbols);
    if (const auto failure = list.add(options.before))
        return report_failure(*failure);
    const std::size_t before_count = list.captures().size();
    if (const auto failure = list.add(options.after))
        return report_failure(*failure);
    const ExportedCapture& before = list.captures()[before_count - 1];
    const ExportedCapture& after = list.captures().back();
    if (before.snapshot.kernel && after.snapshot.kernel &&
        before.snapshot.kernel->uuid != after.snapshot.kernel->uuid)
        say("{} and {} are of different kernels", before.place, after.place);

    const Diff diff = make_diff(before.snapshot, after.snapshot);
    FileSink sink(stdout);
    if (options.json) {
        JsonEmitter json(sink);
        write_diff(diff, before, after, json);
        json.line_feed();
    } else {
        sink.write(diff_text(diff, before, after));
    }
    return list.status();
}

}  // namespace

void add_diff_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("diff", summary);
    verb.argument("BEFORE", options->before.file, "The earlier capture, as report takes it");
    verb.argument("AFTER", options->after.file, "The later one");
    add_max_size_option(verb, options->before);
    options->symbols.add_option(verb);
    verb.flag("--json", options->json, "For programs: a JSON document");
    verb.details(details);
    verb.action([options] { return diff_files(*options); });
}

}  // namespace tools
