#include <memory>

#include "tools/commands.hpp"
#include "tools/reception.hpp"
#include "tools/source.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Takes the captures out of a log of the line";
constexpr const char* details =
    "\nThe log holds console text too. What is missing or damaged is named exactly. A capture "
    "that\n"
    "is not complete is never written as one: what comes before its first gap goes to "
    "FILE.partial.\n\n";

struct Options {
    ReceptionOptions reception{.count = 0};
    std::string log{};
    bool console = false;
};

int extract(Options& options) {
    options.reception.hide_console = !options.console;
    auto opened = open_log(options.log);
    if (!opened.ok())
        return report_failure(opened.failure());
    Source& source = *opened.value();
    Reception reception(options.reception);
    std::vector<std::byte> buffer(1 << 16);
    Source::Read read;
    while ((read = source.read(buffer, {})).state == Source::State::data)
        reception.feed(std::span(buffer).first(read.size));
    const ExitStatus status = reception.finish();
    if (read.state == Source::State::failed) {
        say(read.failure);
        return status == exit_complete ? exit_damaged : status;
    }
    if (reception.frames() == 0)
        say("{}: no capture in it", source.name());
    return status;
}

}  // namespace

void add_extract_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("extract", summary);
    verb.argument("LOG", options->log, "The log, plain or gzip; - is standard input");
    add_output_option(verb, options->reception);
    verb.flag("--console", options->console, "Show the console text on standard error");
    verb.details(details);
    verb.action([options] { return extract(*options); });
}

}  // namespace tools
