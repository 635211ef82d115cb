#include <memory>
#include <vector>

#include "tools/capture_file.hpp"
#include "tools/commands.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Makes plain kcdata of compressed kcdata";
constexpr const char* details =
    "\nOf several buffers in a file, one behind the other, each is written; one that is not "
    "compressed\n"
    "as it is. What can be got out of a damaged buffer goes to FILE.partial, or to standard "
    "output.\n\n";

struct Options {
    InputOptions input{};
    std::string output = "-";
};

int decompress_file(const Options& options) {
    const auto opened = options.input.open();
    if (!opened.ok())
        return report_failure(opened.failure());
    const Input& input = opened.value();
    for (const std::string& text : input.problems())
        say("{}: {}", options.input.file, text);
    for (const std::string& text : input.remarks())
        say("{}: {}", options.input.file, text);

    std::vector<std::byte> plain;
    for (const Input::Buffer& buffer : input.buffers())
        plain.insert(plain.end(), buffer.bytes.begin(), buffer.bytes.end());
    const bool sound = input.problems().empty();
    if (!sound && plain.empty())
        return exit_failure;
    const bool partial = !sound && options.output != "-";
    const std::string output = options.output + (partial ? ".partial" : "");
    if (const auto failure = write_file(output, plain))
        return report_failure(*failure);
    if (partial)
        say("{} bytes are in {}", plain.size(), output);
    return sound ? exit_complete : exit_damaged;
}

}  // namespace

void add_decompress_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("decompress", summary);
    add_input_options(verb, options->input);
    verb.option("-o,--output", "FILE", options->output, "The buffer; - is standard output")
        .show_default();
    verb.details(details);
    verb.action([options] { return decompress_file(*options); });
}

}  // namespace tools
