#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <thread>

#include "tools/commands.hpp"
#include "tools/console.hpp"
#include "tools/installation.hpp"
#include "tools/qemu.hpp"
#include "tools/reception.hpp"

namespace tools {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// How long the image may take to power off, once it has sent everything.
constexpr seconds power_off_time{5};
/// Emulated CPUs can be away from a stop for seconds; on hardware 10 ms are plenty.
constexpr unsigned ack_timeout_ms = 10'000;

constexpr const char* summary = "Boots the image in QEMU and takes stackshots of it";
constexpr const char* details =
    "\nThe machine is QEMU's virt with a GICv3. The workload runs for a while, then the image "
    "takes\n"
    "the stackshots and sends them over its UART, whose console text is shown on standard error.\n"
    "Ends when all captures are in or the image powers off.\n\n";

struct Options {
    QemuOptions qemu{};
    ReceptionOptions reception{};
    std::string workload{};
    std::string append{};
    unsigned delay_ms = 1000;
    bool compress = false;
    bool verbose = false;
    bool interactive = false;
    unsigned linger = 2;

    /// Whether the image runs on until somebody ends it, and takes a stackshot when it is asked to.
    bool stays() const { return interactive || !qemu.socket.empty(); }
};

/// Ours first: a later argument overrides an earlier one.
std::string boot_arguments(const Options& options) {
    std::string arguments =
        fmt::format("ack_timeout_ms={} epoch={}", ack_timeout_ms, std::time(nullptr));
    arguments += options.stays()
                     ? " stackshot.count=0"
                     : fmt::format(" stackshot.count={} stackshot.delay_ms={} stackshot.then=off",
                                   options.reception.count, options.delay_ms);
    if (!options.workload.empty())
        arguments += " workload=" + options.workload;
    if (options.compress)
        arguments += " stackshot.compress";
    if (!options.append.empty())
        arguments += " " + options.append;
    return arguments;
}

std::string end_of_qemu(int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return "the image powered off";
    if (WIFEXITED(status))
        return fmt::format("QEMU failed with status {}", WEXITSTATUS(status));
    return fmt::format("QEMU was killed by signal {}", WTERMSIG(status));
}

/// Reads on until the image powers off, so that the log holds its last words.
void wait_for_power_off(Qemu& qemu, Reception& reception, std::span<std::byte> buffer) {
    const auto deadline = steady_clock::now() + power_off_time;
    while (steady_clock::now() < deadline) {
        const Source::Read read = qemu.uart().read(buffer, milliseconds(100));
        if (read.state == Source::State::data)
            reception.feed(buffer.first(read.size));
        else if (read.state != Source::State::timeout)
            break;
    }
    qemu.wait(milliseconds(500));
}

/// Lets others talk to the image until it powers off.
int serve(Qemu& qemu, const std::string& socket) {
    say("the image's line is at unix:{}; Ctrl-C ends it", socket);
    for (;;) {
        if (const auto ended = qemu.wait(milliseconds(200))) {
            say(end_of_qemu(*ended));
            return WIFEXITED(*ended) && WEXITSTATUS(*ended) == 0 ? exit_complete : exit_failure;
        }
        if (Interruption::requested())
            return exit_interrupted;
    }
}

int run(Options& options) {
    if (options.qemu.image.empty()) {
        const auto found = find_companion("kernel8.img");
        if (!found)
            return report_failure(
                {"there is no kernel8.img beside this program: build it, or name "
                 "an image with --image"});
        options.qemu.image = *found;
    }
    // QEMU's own words about it are not clear.
    if (std::error_code error; !std::filesystem::is_regular_file(options.qemu.image, error))
        return report_failure({fmt::format("{}: no such image", options.qemu.image)});
    options.qemu.boot_arguments = boot_arguments(options);

    Reception reception(options.reception);
    if (const auto failure = reception.open())
        return report_failure(*failure);
    const Interruption interruption;
    const auto command = qemu_command(options.qemu, std::thread::hardware_concurrency());
    if (options.verbose)
        say(shell_line(command));
    auto started = Qemu::start(command, interruption);
    if (!started.ok())
        return report_failure(started.failure());
    Qemu& qemu = *started.value();
    if (options.interactive)
        return run_console(qemu.uart(), {.output = options.reception.output,
                                         .log = options.reception.log,
                                         .linger = options.linger,
                                         .starting = true});
    if (options.stays())
        return serve(qemu, options.qemu.socket);

    std::vector<std::byte> buffer(1 << 16);
    const seconds patience(options.reception.timeout);
    auto deadline = steady_clock::now() + patience;
    std::uint64_t frames = 0;
    while (!reception.done()) {
        const Source::Read read = qemu.uart().read(buffer, milliseconds(200));
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
        if (read.state == Source::State::failed)
            return report_failure({read.failure});
        if (read.state == Source::State::end)
            break;
        if (options.reception.timeout != 0 && steady_clock::now() >= deadline) {
            reception.finish();
            say("gave up: {} s without {}", options.reception.timeout,
                frames == 0 ? "a capture" : "any more of a capture");
            return exit_no_target;
        }
    }
    if (reception.done()) {
        wait_for_power_off(qemu, reception, buffer);
        return reception.finish();
    }
    const ExitStatus status = reception.finish();
    const auto ended = qemu.wait(seconds(2));
    say("{} after {} of {} captures", ended ? end_of_qemu(*ended) : "QEMU closed its UART",
        reception.captures(), options.reception.count);
    return status;
}

}  // namespace

void add_run_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("run", summary);
    add_reception_options(verb, options->reception);
    verb.option("--smp", "N", options->qemu.smp, "CPUs").range(1, 512).show_default();
    verb.option("--el", "N", options->qemu.el, "Exception level the image is entered at, 1 or 2")
        .range(1, 2)
        .show_default();
    verb.option("--cpu", "CPU", options->qemu.cpu, "cortex-a72, cortex-a76 or max").show_default();
    verb.option("--memory", "SIZE", options->qemu.memory, "RAM, as QEMU takes it: 128M, 4G")
        .show_default();
    verb.option("--image", "FILE", options->qemu.image,
                "What to boot [kernel8.img beside this program's build]");
    verb.option("--workload", "NAME", options->workload, "What the image works on [its default]");
    verb.flag("--compress", options->compress,
              "Let the image compress its captures: fewer bytes on the line");
    verb.option("--append", "ARGS", options->append,
                "More boot arguments; they override those given otherwise");
    verb.option("--delay", "MS", options->delay_ms,
                "Milliseconds the workload runs before the first capture")
        .show_default();
    verb.option("--icount", "N", options->qemu.icount,
                "Count instructions instead of following the clock: each takes 2^N ns")
        .range(0, 10);
    verb.option("--qemu", "FILE", options->qemu.program, "The QEMU program").show_default();
    verb.option("--qemu-option", "ARG", options->qemu.extra,
                "A further argument for QEMU; may be given several times");
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
    verb.flag("-v,--verbose", options->verbose, "Print the QEMU command");
    verb.details(details);
    verb.action([options] { return run(*options); });
}

}  // namespace tools
