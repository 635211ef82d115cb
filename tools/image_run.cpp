#include "tools/image_run.hpp"

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <thread>
#include <vector>

#include "tools/console.hpp"
#include "tools/installation.hpp"

namespace tools {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// How long the image may take to power off, once it has sent everything.
constexpr seconds power_off_time{5};
/// Emulated CPUs can be away from a stop for seconds; on hardware 10 ms are plenty.
constexpr unsigned ack_timeout_ms = 10'000;

/// Ours first: a later argument overrides an earlier one.
std::string boot_arguments(const ImageRun& run) {
    std::string arguments =
        fmt::format("ack_timeout_ms={} epoch={}", ack_timeout_ms, std::time(nullptr));
    arguments += run.stays()
                     ? " stackshot.count=0"
                     : fmt::format(" stackshot.count={} stackshot.delay_ms={} stackshot.then=off",
                                   run.reception.count, run.delay_ms);
    if (!run.workload.empty())
        arguments += " workload=" + run.workload;
    if (run.interval_ms)
        arguments += fmt::format(" stackshot.interval_ms={}", *run.interval_ms);
    if (run.compress)
        arguments += " stackshot.compress";
    if (!run.append.empty())
        arguments += " " + run.append;
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
    std::array<std::byte, 1024> unused;
    for (;;) {
        const Source::Read read = qemu.uart().read(unused, milliseconds(200));
        if (read.state == Source::State::interrupted)
            return exit_interrupted;
        if (read.state != Source::State::end && read.state != Source::State::failed)
            continue;
        const auto ended = qemu.wait(seconds(2));
        say(ended ? end_of_qemu(*ended) : "QEMU closed its output");
        return ended && WIFEXITED(*ended) && WEXITSTATUS(*ended) == 0 ? exit_complete
                                                                      : exit_failure;
    }
}

}  // namespace

void add_image_options(Verb& verb, ImageRun& run) {
    verb.option("--smp", "N", run.qemu.smp, "CPUs").range(1, 512).show_default();
    verb.option("--el", "N", run.qemu.el, "Exception level the image is entered at, 1 or 2")
        .range(1, 2)
        .show_default();
    verb.option("--cpu", "CPU", run.qemu.cpu, "cortex-a72, cortex-a76 or max").show_default();
    verb.option("--memory", "SIZE", run.qemu.memory, "RAM, as QEMU takes it: 128M, 4G")
        .show_default();
    verb.option("--image", "FILE", run.qemu.image,
                "What to boot [kernel8.img beside this program's build]");
    verb.option("--workload", "NAME", run.workload, "What the image works on [its default]");
    verb.option("--append", "ARGS", run.append,
                "More boot arguments; they override those given otherwise");
    verb.option("--delay", "MS", run.delay_ms,
                "Milliseconds the workload runs before the first capture")
        .show_default();
    verb.option("--icount", "N", run.qemu.icount,
                "Count instructions instead of following the clock: each takes 2^N ns")
        .range(0, 10);
    verb.option("--qemu", "FILE", run.qemu.program, "The QEMU program").show_default();
    verb.option("--qemu-option", "ARG", run.qemu.extra,
                "A further argument for QEMU; may be given several times");
    verb.flag("-v,--verbose", run.verbose, "Print the QEMU command");
}

int run_image(ImageRun& run) {
    if (run.qemu.image.empty()) {
        const auto found = find_companion("kernel8.img");
        if (!found)
            return report_failure(
                {"there is no kernel8.img beside this program: build it, or name "
                 "an image with --image"});
        run.qemu.image = *found;
    }
    // QEMU's own words about it are not clear.
    if (std::error_code error; !std::filesystem::is_regular_file(run.qemu.image, error))
        return report_failure({fmt::format("{}: no such image", run.qemu.image)});
    run.qemu.boot_arguments = boot_arguments(run);

    Reception reception(run.reception);
    if (const auto failure = reception.open())
        return report_failure(*failure);
    const Interruption interruption;
    const auto command = qemu_command(run.qemu, std::thread::hardware_concurrency());
    if (run.verbose)
        say(shell_line(command));
    auto started = Qemu::start(command, interruption);
    if (!started.ok())
        return report_failure(started.failure());
    Qemu& qemu = *started.value();
    if (run.interactive)
        return run_console(qemu.uart(), {.output = run.reception.output,
                                         .log = run.reception.log,
                                         .linger = run.linger,
                                         .starting = true});
    if (run.stays())
        return serve(qemu, run.qemu.socket);

    std::vector<std::byte> buffer(1 << 16);
    const seconds patience(run.reception.timeout);
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
        if (run.reception.timeout != 0 && steady_clock::now() >= deadline) {
            reception.finish();
            say("gave up: {} s without {}", run.reception.timeout,
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
        reception.captures(), run.reception.count);
    return status;
}

}  // namespace tools
