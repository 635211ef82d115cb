#include <chrono>
#include <memory>

#include "tools/commands.hpp"
#include "tools/interruption.hpp"
#include "tools/reception.hpp"
#include "tools/source.hpp"

namespace tools {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr const char* summary = "Receives stackshots from a serial line, a socket or a pipe";
constexpr const char* details =
    "\nThe unikernel sends its captures between the text of its console, which is shown on "
    "standard\n"
    "error. Only what arrived completely and with the right checksum is written.\n\n";

struct Options {
    ReceptionOptions reception{};
    std::string place{};
    unsigned baud = 115200;
};

int capture(Options& options) {
    Reception reception(options.reception);
    if (const auto failure = reception.open())
        return report_failure(*failure);
    const Interruption interruption;
    auto opened = open_line(options.place, options.baud);
    if (!opened.ok())
        return report_failure(opened.failure());
    Source& source = *opened.value();

    std::vector<std::byte> buffer(1 << 16);
    const seconds patience(options.reception.timeout);
    auto deadline = steady_clock::now() + patience;
    std::uint64_t frames = 0;
    while (!reception.done()) {
        const Source::Read read = source.read(buffer, milliseconds(200));
        if (read.state == Source::State::data)
            reception.feed(std::span(buffer).first(read.size));
        if (reception.frames() != frames) {
            frames = reception.frames();
            deadline = steady_clock::now() + patience;
        }
        if (read.state == Source::State::interrupted) {
            reception.finish();
            say("interrupted");
            return exit_interrupted;
        }
        if (read.state == Source::State::failed || read.state == Source::State::end) {
            const ExitStatus status = reception.finish();
            say(read.state == Source::State::failed
                    ? read.failure
                    : fmt::format("{} ended after {} of {} captures", source.name(),
                                  reception.captures(), options.reception.count));
            return status;
        }
        if (options.reception.timeout != 0 && steady_clock::now() >= deadline) {
            reception.finish();
            say("gave up: {} s without {} from {}", options.reception.timeout,
                frames == 0 ? "a capture" : "any more of a capture", source.name());
            return exit_no_target;
        }
    }
    return reception.finish();
}

}  // namespace

void add_capture_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("capture", summary);
    verb.argument("LINE", options->place,
                  "A terminal device (/dev/ttyUSB0), the path of a Unix socket (or unix:PATH), "
                  "tcp:HOST:PORT, or - for standard input");
    add_reception_options(verb, options->reception);
    verb.option("--baud", "N", options->baud, "Speed of a terminal device in bits a second")
        .show_default();
    verb.details(details);
    verb.action([options] { return capture(*options); });
}

}  // namespace tools
