#include "tools/link_options.hpp"

#include <utility>

namespace tools {

LinkOptions TargetOptions::link() const {
    LinkOptions options;
    options.host.patience = std::uint64_t{timeout} * 1'000'000;
    options.host.encoding =
        text_frames ? kcdata::serial::Encoding::text : kcdata::serial::Encoding::binary;
    options.hide_console = quiet;
    return options;
}

void add_target_options(Verb& verb, TargetOptions& options) {
    verb.argument("TARGET", options.place,
                  "A terminal device (/dev/ttyUSB0), the path of a Unix socket (or unix:PATH), or "
                  "tcp:HOST:PORT");
    verb.option("--baud", "N", options.baud,
                "Speed of a terminal device in bits a second, as the unikernel has it")
        .show_default();
    verb.option("--rate", "N", options.rate,
                "Change over to this speed meanwhile, if both ends can; else stay at the one there "
                "is");
    verb.option("--timeout", "S", options.timeout,
                "Seconds without anything new after which to give up")
        .range(1, 3600)
        .show_default();
    verb.flag("--text", options.text_frames,
              "Frames as lines of text, for a line that is not 8-bit clean");
    verb.flag("-q,--quiet", options.quiet, "Do not show the console");
}

Expected<std::unique_ptr<TargetLink>> TargetLink::open(const TargetOptions& options) {
    auto opened = open_connection(options.place, options.baud);
    if (!opened.ok())
        return opened.failure();
    std::unique_ptr<TargetLink> target(new TargetLink(std::move(opened.value()), options));
    if (const auto failure = target->link_.connect())
        return *failure;
    target->baud_ = options.baud;
    if (options.rate && *options.rate != options.baud) {
        if (const auto failure = target->link_.change_baud_rate(*options.rate)) {
            if (failure->status == exit_no_target || failure->status == exit_interrupted)
                return *failure;
            say("{}; it stays at {}", failure->text, options.baud);
        } else {
            target->changed_ = true;
        }
    }
    return target;
}

TargetLink::~TargetLink() {
    if (changed_)
        // By itself the unikernel goes back too, some seconds later.
        (void)link_.change_baud_rate(baud_);
    link_.clear_line();
}

}  // namespace tools
