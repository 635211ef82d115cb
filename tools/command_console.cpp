#include <memory>

#include "tools/commands.hpp"
#include "tools/console.hpp"
#include "tools/interruption.hpp"
#include "tools/source.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Shows a unikernel's console and types at it";
constexpr const char* details =
    "\nWhat is typed goes to the unikernel, which knows help, ps, stackshot, stats, trace, run, "
    "stop,\n"
    "reboot and off. Stackshots that it sends are written to files. Ctrl-] ends the console.\n"
    "Without a terminal the lines of standard input are typed, and it ends when there are no more\n"
    "and the unikernel has been silent for a while:\n\n"
    "  echo ps | stackshot console /dev/ttyUSB0\n\n";

struct Options {
    ConsoleOptions console{};
    std::string place{};
    unsigned baud = 115200;
};

int console(const Options& options) {
    const Interruption interruption;
    const auto opened = open_connection(options.place, options.baud);
    if (!opened.ok())
        return report_failure(opened.failure());
    return run_console(*opened.value(), options.console);
}

}  // namespace

void add_console_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("console", summary);
    verb.argument("TARGET", options->place,
                  "A terminal device (/dev/ttyUSB0), the path of a Unix socket (or unix:PATH), or "
                  "tcp:HOST:PORT");
    verb.option("-o,--output", "FILE", options->console.output,
                "Where a stackshot goes that is sent, further ones to NAME-2.EXT and so on")
        .show_default();
    verb.option("--log", "FILE", options->console.log,
                "Where every byte that comes goes, console text and frames");
    verb.option("--baud", "N", options->baud, "Speed of a terminal device in bits a second")
        .show_default();
    verb.option("--linger", "S", options->console.linger,
                "Seconds to go on without a word from the unikernel after the end of an input that "
                "is no terminal")
        .show_default();
    verb.details(details);
    verb.action([options] { return console(*options); });
}

}  // namespace tools
