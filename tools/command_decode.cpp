#include <cstdio>
#include <memory>

#include "tools/capture_file.hpp"
#include "tools/commands.hpp"
#include "tools/decode.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Prints a kcdata buffer as JSON";
constexpr const char* details =
    "\nKeys and shapes are those of libkdd. Integers are exact up to 2^64 - 1. An item of a type "
    "that\n"
    "is not known is printed as \"Type_0x...\", a list of bytes.\n\n";

struct Options {
    std::string file{};
    bool compact = false;
};

int decode_file(const Options& options) {
    const auto bytes = read_capture(options.file);
    if (!bytes.ok())
        return report_failure(bytes.failure());
    const Decoded decoded = decode(bytes.value());
    if (!decoded.root.entries().empty()) {
        std::string text;
        JsonEmitter json(text, options.compact ? 0 : 2);
        emit(json, decoded.root);
        text += '\n';
        std::fwrite(text.data(), 1, text.size(), stdout);
    }
    for (const std::string& problem : decoded.problems)
        say("{}: {}", options.file, problem);
    if (decoded.problems.empty())
        return exit_complete;
    return decoded.root.entries().empty() ? exit_failure : exit_damaged;
}

}  // namespace

void add_decode_command(CLI::App& app, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* verb = app.add_subcommand("decode", summary);
    verb->add_option("FILE", options->file,
                     "The buffer: plain, gzip or base64; - is standard input")
        ->type_name("")
        ->required();
    verb->add_flag("--compact", options->compact, "Everything on one line");
    verb->footer(std::string(details) + exit_status_help);
    verb->callback([options, &action] { action = [options] { return decode_file(*options); }; });
}

}  // namespace tools
