#include <cstdio>
#include <memory>
#include <vector>

#include "tools/capture_file.hpp"
#include "tools/commands.hpp"
#include "tools/encode.hpp"
#include "tools/item_json.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Makes a kcdata buffer of text: what dump --json prints, or JSON";

struct Options {
    std::string file{};
    std::string output = "-";
};

int encode_file(const Options& options) {
    const auto text = read_file(options.file);
    if (!text.ok())
        return report_failure(text.failure());
    std::vector<std::byte> buffer;
    const std::string_view characters(reinterpret_cast<const char*>(text.value().data()),
                                      text.value().size());
    const std::string name = options.file == "-" ? "standard input" : options.file;
    if (const auto failure = encode(characters, name, [&buffer](std::span<const std::byte> bytes) {
            buffer.insert(buffer.end(), bytes.begin(), bytes.end());
        }))
        return report_failure(*failure);
    if (const auto failure = write_file(options.output, buffer))
        return report_failure(*failure);
    return exit_complete;
}

}  // namespace

void add_encode_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("encode", summary);
    verb.argument("FILE", options->file, "The text; - is standard input");
    verb.option("-o,--output", "FILE", options->output, "The buffer; - is standard output")
        .show_default();
    verb.details(std::string(item_format) + "\n");
    verb.action([options] { return encode_file(*options); });
}

}  // namespace tools
