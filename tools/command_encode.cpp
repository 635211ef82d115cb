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

void add_encode_command(CLI::App& app, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* verb = app.add_subcommand("encode", summary);
    verb->add_option("FILE", options->file, "The text; - is standard input")
        ->type_name("")
        ->required();
    verb->add_option("-o,--output", options->output, "The buffer; - is standard output")
        ->type_name("FILE")
        ->capture_default_str();
    verb->footer(std::string(item_format) + "\n" + exit_status_help);
    verb->callback([options, &action] { action = [options] { return encode_file(*options); }; });
}

}  // namespace tools
