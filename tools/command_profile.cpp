#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kcdata/serial/message.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "tools/capture_file.hpp"
#include "tools/capture_list.hpp"
#include "tools/commands.hpp"
#include "tools/image_run.hpp"
#include "tools/interruption.hpp"
#include "tools/link_options.hpp"

namespace tools {

namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* summary = "Merges stackshots into a profile: what threads are at, how often";
constexpr const char* details =
    "\nWith files, their captures are the samples, in the order given; a delta is completed from\n"
    "what comes before it. Without, the image is booted in QEMU and takes them of itself; sending\n"
    "takes time too, so --every is the least that is between two.\n\n"
    "  stackshot profile --count 50 --every 10ms                      what the image is at\n"
    "  stackshot profile --count 50 --format speedscope >a.json       for speedscope.app\n"
    "  stackshot profile a.kcdata b.kcdata --format folded            of captures that are "
    "there\n\n"
    "Formats:\n"
    "  text        a tree of calls for each thread, with counts\n";

struct Options {
    std::vector<std::string> files{};
    InputOptions input{};
    KernelSymbols symbols{};
    ImageRun run{};
    std::string target{};
    unsigned baud = 115200;
    unsigned every_ms = 10;
    std::string format = "text";
};

/// A folder of our own, for as long as the object lives.
class ScratchFolder {
  public:
    ScratchFolder() = default;
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    ~ScratchFolder() {
        std::error_code ignored;
        if (!path_.empty())
            std::filesystem::remove_all(path_, ignored);
    }

    std::optional<Failure> create() {
        std::error_code error;
        const auto parent = std::filesystem::temp_directory_path(error);
        std::string name = ((error ? "/tmp" : parent) / "stackshot-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr)
            return system_failure("creating " + name, errno);
        path_ = name;
        return std::nullopt;
    }
    std::string file(const char* name) const { return (path_ / name).string(); }

  private:
    std::filesystem::path path_{};
};

/// Asks a unikernel that runs for the captures, of which all but the first are deltas. Those that
/// arrived before a failure count.
class TargetCaptures {
  public:
    TargetCaptures(const Options& options, CaptureList& list) : options_(options), list_(list) {}

    std::optional<Failure> run() {
        const Interruption interruption;
        auto target = TargetLink::open({.place = options_.target,
                                        .baud = options_.baud,
                                        .timeout = options_.run.reception.timeout,
                                        .quiet = options_.run.reception.hide_console});
        if (!target.ok())
            return target.failure();
        Link& link = target.value()->link();
        auto due = steady_clock::now();
        for (unsigned i = 0; i < options_.run.reception.count; ++i) {
            if (const auto left = duration_cast<milliseconds>(due - steady_clock::now());
                left.count() > 0)
                if (auto failure = link.idle(left))
                    return failure;
            due = steady_clock::now() + milliseconds(options_.every_ms);
            if (auto failure = take(link, i))
                return failure;
        }
        return std::nullopt;
    }

  private:
    std::optional<Failure> take(Link& link, unsigned index) {
        const kcdata::serial::StackshotRequest request = next_request();
        const auto object = link.request_object(kcdata::serial::Operation::stackshot,
                                                std::as_bytes(std::span(&request, 1)));
        if (!object.ok())
            return object.failure();
        auto bytes = link.pull(object.value());
        if (!bytes.ok())
            return bytes.failure();
        link.clear_line();
        const std::string& output = options_.run.reception.output;
        if (!output.empty())
            if (auto failure = write_file(Reception::file_name(output, index), bytes.value()))
                return failure;
        return list_.add(std::move(bytes.value()),
                         fmt::format("capture {} of {}", index + 1, options_.target));
    }

    kcdata::serial::StackshotRequest next_request() const {
        using namespace kcdata;
        serial::StackshotRequest request;
        request.flags = STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_LOADINFO |
                        STACKSHOT_GET_GLOBAL_MEM_STATS | STACKSHOT_THREAD_WAITINFO;
        const auto& captures = list_.captures();
        const auto time = captures.empty() ? std::optional<std::uint64_t>()
                                           : captures.back().snapshot.absolute_time;
        if (time) {
            request.flags |= STACKSHOT_COLLECT_DELTA_SNAPSHOT;
            request.delta_timestamp = *time;
        } else {
            request.flags |= STACKSHOT_DO_COMPRESS;
        }
        return request;
    }

    const Options& options_;
    CaptureList& list_;
};

/// Takes the captures into files, whose names are added. What did not arrive makes the status.
Expected<int> take_captures(Options& options, const ScratchFolder& folder) {
    ReceptionOptions& reception = options.run.reception;
    if (reception.output.empty())
        reception.output = folder.file("capture.kcdata");
    options.run.interval_ms = options.every_ms;
    const int status = run_image(options.run);
    for (unsigned i = 0; i < reception.count; ++i) {
        const std::string name = Reception::file_name(reception.output, i);
        std::error_code error;
        if (!std::filesystem::is_regular_file(name, error))
            break;
        options.files.push_back(name);
    }
    if (options.files.empty())
        return Failure{"no capture arrived",
                       static_cast<ExitStatus>(status != exit_complete ? status : exit_failure)};
    return status;
}

int profile(Options& options) {
    if (options.run.reception.output == "-")
        return report_failure(
            {"the captures cannot go to standard output: the profile does", exit_usage});
    if (!options.files.empty() && !options.target.empty())
        return report_failure({"either files or --from", exit_usage});
    ScratchFolder folder;
    int status = exit_complete;
    if (options.files.empty() && options.target.empty()) {
        if (const auto failure = folder.create())
            return report_failure(*failure);
        const auto taken = take_captures(options, folder);
        if (!taken.ok())
            return report_failure(taken.failure());
        status = taken.value();
    }
    if (const auto failure = options.symbols.open())
        return report_failure(*failure);
    CaptureList list(options.symbols);
    if (!options.target.empty())
        if (const auto failure = TargetCaptures(options, list).run()) {
            status = report_failure(*failure);
            if (list.captures().empty())
                return status;
        }
    for (const std::string& file : options.files) {
        options.input.file = file;
        if (const auto failure = list.add(options.input))
            return report_failure(*failure);
    }
    FileSink sink(stdout);
    const std::string name = options.format == "text" ? "tree" : options.format;
    find_export_format(name)->write(list.captures(), sink);
    return status == exit_complete ? static_cast<int>(list.status()) : status;
}

}  // namespace

void add_profile_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("profile", summary);
    verb.words("FILE...", options->files,
               "Captures, as report takes them [those that the image takes]");
    std::vector<std::string> formats{"text"};
    std::string list;
    for (const ExportFormat& format : export_formats())
        if (!format.single && format.name != std::string("tree")) {
            formats.emplace_back(format.name);
            list += fmt::format("  {:<10}  {}\n", format.name, format.summary);
        }
    verb.option("--format", "FORMAT", options->format, "What to write; see below")
        .one_of(formats)
        .show_default();
    add_max_size_option(verb, options->input);
    options->symbols.add_option(verb);
    ReceptionOptions& reception = options->run.reception;
    reception.count = 20;
    reception.output.clear();
    // Sending is most of the time from one to the next.
    options->run.compress = true;
    verb.option("--count", "N", reception.count, "Captures that the image takes")
        .range(1, UINT_MAX)
        .show_default();
    verb.option("--every", "TIME", options->every_ms,
                "From one capture to the next: 10ms, 1s [10ms]")
        .milliseconds();
    verb.option("-o,--output", "FILE", reception.output,
                "Keep the image's captures: in FILE, NAME-2.EXT and so on [they are not kept]");
    verb.option("--timeout", "S", reception.timeout,
                "Seconds until a capture must have begun, and then between its parts; 0: no limit")
        .show_default();
    verb.flag("-q,--quiet", reception.hide_console, "Do not show the console");
    verb.option("--from", "TARGET", options->target,
                "Ask a unikernel that runs, as `request` does, instead of booting the image; all "
                "captures but the first are deltas");
    verb.option("--baud", "N", options->baud, "Speed of a terminal device, with --from")
        .show_default();
    add_image_options(verb, options->run);
    verb.details(details + list + "\n");
    verb.action([options] { return profile(*options); });
}

}  // namespace tools
