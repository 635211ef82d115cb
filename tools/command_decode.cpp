#include <cstdio>
#include <memory>

#include "tools/commands.hpp"
#include "tools/decode.hpp"
#include "tools/input.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Prints a kcdata buffer as JSON";
constexpr const char* details =
    "\nKeys and shapes are those of libkdd. Integers are exact up to 2^64 - 1. An item of a type "
    "that\n"
    "is not known is printed as \"Type_0x...\", a list of bytes. Of several buffers in a file, "
    "each "
    "is\n"
    "a JSON document, one behind the other.\n\n"
    "Where libkdd drops or mislabels something, --full does not: fields have XNU's names and\n"
    "types, also those libkdd has no description of; all values of a repeated key or id are in a\n"
    "list; addresses are text in hexadecimal; bytes that no field explains are in\n"
    "\"trailing_bytes\", beside those that are.\n\n"
    "With --names an enumeration is the name of its value, or a number if it has none; flags are\n"
    "a list of names, with \"NAME=0x...\" for a part of several bits and \"0x...\" for what has "
    "no\n"
    "name.\n\n"
    "With --lines the first line of a buffer has all that lies in no container, as in the whole\n"
    "document; then follows a line for each container (a task, say): {\"task_snapshots\": {ID: "
    "{...}}}.\n\n"
    "What is damaged is left out and named with its offset, the number of its item and the\n"
    "containers around it; the rest is printed, and the exit status is 3. Bytes behind the end of "
    "a\n"
    "buffer mean nothing: they are passed over and told of, unless they are zero; a buffer behind\n"
    "them is found. --strict refuses both.\n\n"
    "JSON holds only UTF-8: of a text that is not, each wrong byte is U+FFFD. dump shows the "
    "bytes.\n\n";

struct Options {
    InputOptions input{};
    bool compact = false;
    bool lines = false;
    bool strict = false;
    DecodeOptions decode{};
};

/// What came of all buffers.
struct Outcome {
    bool written = false;
    std::uint64_t problems = 0;
};

Outcome decode_all(const Options& options, const Input& input, TextSink& sink) {
    Outcome outcome;
    JsonEmitter json(sink, options.compact || options.lines ? 0 : 2);
    for (std::size_t i = 0; i < input.buffers().size() && !json.failed(); ++i) {
        const Input::Buffer& buffer = input.buffers()[i];
        const Decoded decoded = options.lines ? decode_lines(buffer.bytes, json, options.decode)
                                              : decode(buffer.bytes, json, options.decode);
        outcome.written |= decoded.written;
        outcome.problems += decoded.problem_count;
        const std::string place = options.input.place(input, i);
        for (const std::string& problem : decoded.problems)
            say("{}: {}", place, problem);
        if (decoded.problem_count > decoded.problems.size())
            say("{}: and {} more problems", place, decoded.problem_count - decoded.problems.size());
    }
    return outcome;
}

int decode_file(const Options& options) {
    const auto opened = options.input.open();
    if (!opened.ok())
        return report_failure(opened.failure());
    const Input& input = opened.value();
    const std::string& file = options.input.file;
    for (const std::string& text : input.problems())
        say("{}: {}", file, text);
    for (const std::string& text : input.remarks())
        say("{}: {}", file, text);

    if (options.strict) {
        CountingSink nowhere;
        const Outcome outcome = decode_all(options, input, nowhere);
        if (outcome.problems != 0 || !input.problems().empty() || !input.remarks().empty()) {
            say("{}: refused, as it is not sound (--strict)", file);
            return exit_failure;
        }
    }
    FileSink sink(stdout);
    const Outcome outcome = decode_all(options, input, sink);
    if (!outcome.written)
        return exit_failure;
    return outcome.problems != 0 || !input.problems().empty() ? exit_damaged : exit_complete;
}

}  // namespace

void add_decode_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("decode", summary);
    add_input_options(verb, options->input);
    verb.flag("--compact", options->compact, "Each document on one line");
    verb.flag("--lines", options->lines, "Each container on one line (NDJSON)");
    verb.flag("--full", options->decode.full,
              "XNU's names and types in place of libkdd's, and nothing left out");
    verb.flag("--names", options->decode.names, "Flags and enumerations by name");
    verb.flag("--strict", options->strict,
              "Print nothing, and fail, if anything is wrong with the input");
    verb.details(details);
    verb.action([options] { return decode_file(*options); });
}

}  // namespace tools
