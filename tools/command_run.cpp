#include <memory>

#include "tools/commands.hpp"
#include "tools/image_run.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Boots the image in QEMU and takes stackshots of it";
constexpr const char* details =
    "\nThe machine is QEMU's virt with a GICv3. The workload runs for a while, then the image "
    "takes\n"
    "the stackshots and sends them over its UART, whose console text is shown on standard error.\n"
    "Ends when all captures are in or the image powers off.\n\n";

}  // namespace

void add_run_command(CommandLine& line) {
    auto options = std::make_shared<ImageRun>();
    Verb verb = line.verb("run", summary);
    add_reception_options(verb, options->reception);
    add_image_options(verb, *options);
    verb.flag("--compress", options->compress,
              "Let the image compress its captures: fewer bytes on the line");
    Option interactive = verb.flag("-i,--interactive", options->interactive,
                                   "Be the image's console, and take a stackshot only when it is "
                                   "typed there; see `console`");
    verb.option("--listen", "PATH", options->qemu.socket,
                "Let its line be a Unix socket, for `request`, `watch` and `console`, until it "
                "powers off")
        .excludes(interactive);
    verb.option("--linger", "S", options->linger,
                "With --interactive: seconds to go on without a word from the image after the end "
                "of an input that is no terminal")
        .show_default();
    verb.details(details);
    verb.action([options] { return run_image(*options); });
}

}  // namespace tools
