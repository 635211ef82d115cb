#include <cstdio>
#include <memory>
#include <span>

#include "tools/analysis_json.hpp"
#include "tools/analysis_text.hpp"
#include "tools/analyze.hpp"
#include "tools/commands.hpp"
#include "tools/input.hpp"
#include "tools/snapshot.hpp"
#include "tools/wait_graph.hpp"
#include "tools/wait_graph_dot.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Tells who waits for whom: deadlocks, heads of chains, inversions";
constexpr const char* details =
    "\nJoins the capture's wait infos and turnstile infos to a graph. Shown are\n"
    "  deadlocks            threads that wait for each other and cannot go on; through a task (a\n"
    "                       port's receiver) only if every thread of it is among those that "
    "cannot\n"
    "  cycles that may yet  through a task of which some thread may act\n"
    "  be broken\n"
    "  heads of chains      what all waits behind it end at, and what it is doing\n"
    "  priority inversions  a thread keeps one of higher base priority waiting\n"
    "  what could not be    owners that were locked or not recorded, what is not in the capture\n"
    "  known\n"
    "A semaphore can be signalled by anybody, so no deadlock goes through one. The records do not\n"
    "tell of time-outs: a wait that has one ends by itself.\n\n"
    "--format json is one document for each capture (tools/analysis_json.hpp), dot one digraph "
    "for\n"
    "Graphviz.\n\n"
    "Exit status 10 if there is a deadlock, also if the input is damaged: what damage hides makes\n"
    "no deadlock. Without one, damaged input ends with 3, and something may have been missed.\n\n";

struct Options {
    InputOptions input{};
    std::string format = "text";
    bool json = false;
};

int analyze_buffer(const Options& options, const std::string& place,
                   std::span<const std::byte> buffer) {
    const Snapshot snapshot = read_snapshot(buffer);
    const WaitGraph graph = make_wait_graph(snapshot);
    const Diagnosis diagnosis = diagnose(graph);
    FileSink sink(stdout);
    if (options.format == "json") {
        JsonEmitter json(sink);
        write_analysis(graph, diagnosis, json);
        json.line_feed();
    } else {
        sink.write(options.format == "dot" ? wait_graph_dot(graph, diagnosis, place)
                                           : analysis_text(graph, diagnosis));
    }
    for (const std::string& problem : snapshot.problems)
        say("{}: {}", place, problem);
    if (!diagnosis.deadlocks.empty())
        return exit_deadlock;
    if (!snapshot.problems.empty())
        return snapshot.tasks.empty() ? exit_failure : exit_damaged;
    return exit_complete;
}

int analyze_file(const Options& options) {
    const auto opened = options.input.open();
    if (!opened.ok())
        return report_failure(opened.failure());
    const Input& input = opened.value();
    const std::string& file = options.input.file;
    for (const std::string& text : input.problems())
        say("{}: {}", file, text);

    bool deadlock = false, damaged = !input.problems().empty(), salvaged = false;
    for (std::size_t i = 0; i < input.buffers().size(); ++i) {
        const int status =
            analyze_buffer(options, options.input.place(input, i), input.buffers()[i].bytes);
        deadlock |= status == exit_deadlock;
        damaged |= status == exit_damaged || status == exit_failure;
        salvaged |= status != exit_failure;
    }
    if (deadlock)
        return exit_deadlock;
    if (!salvaged)
        return exit_failure;
    return damaged ? exit_damaged : exit_complete;
}

}  // namespace

void add_analyze_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("analyze", summary);
    add_input_options(verb, options->input);
    verb.option("--format", "FORMAT", options->format, "text, json or dot")
        .one_of({"text", "json", "dot"})
        .show_default();
    verb.flag("--json", options->json, "The same as --format json");
    verb.details(details);
    verb.action([options] {
        if (options->json)
            options->format = "json";
        return analyze_file(*options);
    });
}

}  // namespace tools
