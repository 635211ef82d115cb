#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>

#include "kcdata/serial/receiver.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "tools/capture_file.hpp"
#include "tools/commands.hpp"
#include "tools/interruption.hpp"
#include "tools/link_options.hpp"
#include "tools/printable.hpp"
#include "tools/snapshot.hpp"
#include "tools/stackshot_flags.hpp"

namespace tools {

namespace {

using namespace kcdata::serial;

constexpr const char* summary = "Asks a unikernel for a stackshot, or for something else";
constexpr const char* details =
    "\nREQUEST is one of\n"
    "  stackshot          take a stackshot and receive it (the default)\n"
    "  retained           receive the one the kernel retains (--flags SAVE_IN_KERNEL_BUFFER)\n"
    "  captures           list what can be received\n"
    "  receive NAME       receive one of them\n"
    "  release NAME       let go of one of them\n"
    "  tasks | statistics | trace\n"
    "                     print what the unikernel tells of itself\n"
    "  run NAME [tasks=N] [threads=N] [depth=N] [seed=N]\n"
    "                     start a workload\n"
    "  stop NAME          stop a workload that can be stopped\n"
    "  reboot | poweroff\n\n"
    "What arrives of a capture is kept in FILE.part until it is complete. If that is there, and\n"
    "the unikernel still has the capture, the next run goes on from it instead of taking another\n"
    "one.\n\n"
    "  stackshot request /dev/ttyUSB0 -o a.kcdata\n"
    "  stackshot request /dev/ttyUSB0 --rate 921600 --pid 3\n"
    "  stackshot request /dev/ttyUSB0 --delta-from a.kcdata -o b.kcdata\n"
    "  stackshot request unix:/tmp/uart run fleet tasks=20 threads=10\n\n";

struct Options {
    TargetOptions target{};
    std::vector<std::string> request{};
    std::string output = "stackshot.kcdata";
    std::string flags{};
    std::optional<unsigned> pid{};
    std::string delta_from{};
    std::uint64_t size_hint = 0;
    std::string workload{};
    bool plain = false;
    bool fresh = false;
};

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

/// Of the object that a file of frames holds part of.
struct KeptObject final : ReceiverHandler {
    std::optional<std::uint32_t> name{};

    void text(std::span<const std::byte>) override {}
    void complete(std::uint32_t capture, std::vector<std::byte>) override { name = capture; }
    void progress(const Progress& progress) override { name = progress.object; }
    void damaged(std::uint64_t, std::size_t) override {}
    void abandoned(const PartialCapture&, AbandonReason) override {}
};

class Requester {
  public:
    Requester(Link& link, const Options& options) : link_(link), options_(options) {}

    std::optional<Failure> stackshot();
    std::optional<Failure> retained();
    std::optional<Failure> captures();
    std::optional<Failure> receive(const std::string& name);
    std::optional<Failure> release(const std::string& name);
    std::optional<Failure> text(Operation operation);
    std::optional<Failure> plain(Operation operation, std::string_view body = {});

  private:
    std::string part_name() const {
        return options_.output == "-" ? std::string() : options_.output + ".part";
    }
    Expected<StackshotRequest> stackshot_request() const;
    Expected<std::vector<ObjectDescription>> list();
    /// The rest of the capture that FILE.part holds, if the unikernel still has it.
    Expected<bool> go_on();
    std::optional<Failure> receive(const ObjectDescription& object);

    Link& link_;
    const Options& options_;
};

Expected<StackshotRequest> Requester::stackshot_request() const {
    using namespace kcdata;
    StackshotRequest request;
    request.flags = STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_LOADINFO |
                    STACKSHOT_GET_GLOBAL_MEM_STATS | STACKSHOT_THREAD_WAITINFO;
    if (!options_.flags.empty()) {
        const auto flags = parse_stackshot_flags(options_.flags);
        if (!flags.ok())
            return flags.failure();
        request.flags = flags.value() | STACKSHOT_KCDATA_FORMAT;
    }
    if (!options_.delta_from.empty()) {
        const auto base = Input::open(options_.delta_from);
        if (!base.ok())
            return base.failure();
        const Snapshot before = read_snapshot(base.value().buffers().back().bytes);
        if (!before.absolute_time)
            return Failure{fmt::format("{}: does not tell when it was taken", options_.delta_from),
                           exit_damaged};
        request.flags |= STACKSHOT_COLLECT_DELTA_SNAPSHOT;
        request.delta_timestamp = *before.absolute_time;
    }
    // What the kernel does not compress by itself is compressed when it is sent, not retained.
    constexpr std::uint64_t never_compressed =
        STACKSHOT_COLLECT_DELTA_SNAPSHOT | STACKSHOT_PAGE_TABLES;
    const bool retained = (request.flags & STACKSHOT_SAVE_IN_KERNEL_BUFFER) != 0;
    if (!options_.plain && !(retained && (request.flags & never_compressed) != 0))
        request.flags |= STACKSHOT_DO_COMPRESS;
    if (options_.pid)
        request.pid = static_cast<std::int32_t>(*options_.pid);
    request.size_hint = static_cast<std::uint32_t>(options_.size_hint);
    return request;
}

std::optional<Failure> Requester::stackshot() {
    // What is wrong with the request is told before anything is asked.
    const auto request = stackshot_request();
    if (!request.ok())
        return request.failure();
    if (!options_.workload.empty())
        if (auto failure = plain(Operation::run_workload, options_.workload))
            return failure;
    const auto gone_on = go_on();
    if (!gone_on.ok())
        return gone_on.failure();
    if (gone_on.value())
        return std::nullopt;
    const auto object =
        link_.request_object(Operation::stackshot, std::as_bytes(std::span(&request.value(), 1)));
    if (!object.ok())
        return object.failure();
    if (object.value().size == 0) {
        say("the stackshot was taken and is retained in the kernel: `retained` receives it");
        return std::nullopt;
    }
    return receive(object.value());
}

Expected<std::vector<ObjectDescription>> Requester::list() {
    const auto answer = link_.request(Operation::captures);
    if (!answer.ok())
        return answer.failure();
    std::array<ObjectDescription, max_listed> objects;
    std::size_t count = 0;
    if (!decode_list(answer.value(), objects, count))
        return Failure{"captures: the answer is no list"};
    return std::vector(objects.begin(), objects.begin() + static_cast<std::ptrdiff_t>(count));
}

Expected<bool> Requester::go_on() {
    const std::string part = part_name();
    if (part.empty() || ::access(part.c_str(), F_OK) != 0)
        return false;
    const auto frames = read_file(part);
    if (!frames.ok())
        return frames.failure();
    KeptObject kept;
    Receiver receiver(kept);
    receiver.feed(frames.value());
    if (kept.name && !options_.fresh) {
        const auto objects = list();
        if (!objects.ok())
            return objects.failure();
        for (const ObjectDescription& object : objects.value()) {
            if (object.name != *kept.name)
                continue;
            say("going on with capture {:08x}, of which {} has a part", object.name, part);
            link_.resume(frames.value());
            if (const auto failure = receive(object))
                return *failure;
            return true;
        }
        say("{} is of capture {:08x}, which the unikernel does not have any more", part,
            *kept.name);
    }
    if (::unlink(part.c_str()) != 0)
        return system_failure("removing " + part, errno);
    return false;
}

std::optional<Failure> Requester::receive(const ObjectDescription& object) {
    const std::string part = part_name();
    const std::uint64_t before = link_.statistics().bytes_received;
    auto bytes = link_.pull(object, part);
    if (!bytes.ok()) {
        if (!part.empty())
            say("what arrived of capture {:08x} is in {}: the same request goes on from there",
                object.name, part);
        return bytes.failure();
    }
    link_.clear_line();
    if (auto failure = write_file(options_.output, bytes.value()))
        return failure;
    if (!part.empty() && ::unlink(part.c_str()) != 0)
        return system_failure("removing " + part, errno);
    const double seconds = link_.pull_time().count();
    say("{} bytes written to {} ({:.2f} s, {} bytes of the line)", bytes.value().size(),
        options_.output == "-" ? "standard output" : options_.output, seconds,
        link_.statistics().bytes_received - before);
    return std::nullopt;
}

std::optional<Failure> Requester::retained() {
    const auto gone_on = go_on();
    if (!gone_on.ok())
        return gone_on.failure();
    if (gone_on.value())
        return std::nullopt;
    const auto object = link_.request_object(Operation::retained);
    if (!object.ok())
        return object.failure();
    return receive(object.value());
}

std::optional<Failure> Requester::captures() {
    const auto objects = list();
    if (!objects.ok())
        return objects.failure();
    for (const ObjectDescription& object : objects.value())
        fmt::print("{:08x} {} bytes, taken at {}\n", object.name, object.size,
                   object.time != 0 ? fmt::format("{}", object.time) : "a time not known");
    return std::nullopt;
}

Expected<std::uint32_t> parse_name(const std::string& text) {
    std::uint32_t name = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, name, 16);
    if (error != std::errc() || at != end)
        return Failure{fmt::format("{}: not the name of a capture, as `captures` lists it", text),
                       exit_usage};
    return name;
}

std::optional<Failure> Requester::receive(const std::string& text) {
    const auto name = parse_name(text);
    if (!name.ok())
        return name.failure();
    const auto objects = list();
    if (!objects.ok())
        return objects.failure();
    for (const ObjectDescription& object : objects.value())
        if (object.name == name.value())
            return receive(object);
    return Failure{fmt::format("the unikernel has no capture {}", text)};
}

std::optional<Failure> Requester::release(const std::string& text) {
    const auto name = parse_name(text);
    if (!name.ok())
        return name.failure();
    const ReleaseRequest request{.name = name.value()};
    const auto answer = link_.request(Operation::release, std::as_bytes(std::span(&request, 1)));
    return answer.ok() ? std::nullopt : std::optional(answer.failure());
}

std::optional<Failure> Requester::text(Operation operation) {
    const auto object = link_.request_object(operation);
    if (!object.ok())
        return object.failure();
    const auto bytes = link_.pull(object.value());
    if (!bytes.ok())
        return bytes.failure();
    link_.clear_line();
    const std::string shown = printable(
        std::string_view(reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size()),
        true);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    return std::nullopt;
}

std::optional<Failure> Requester::plain(Operation operation, std::string_view body) {
    const auto answer = link_.request(operation, bytes_of(body));
    return answer.ok() ? std::nullopt : std::optional(answer.failure());
}

/// The words behind the first one, as one text.
std::string rest_of(const std::vector<std::string>& words) {
    std::string rest;
    for (std::size_t index = 1; index < words.size(); ++index)
        rest += (index > 1 ? " " : "") + words[index];
    return rest;
}

/// A word of the command line and what it asks for.
struct Request {
    const char* name;
    std::size_t least_words, most_words;  ///< behind it
    std::optional<Failure> (*make)(Requester&, const std::vector<std::string>& words);
};
using Words = const std::vector<std::string>&;
constexpr Request requests[] = {
    {"stackshot", 0, 0, [](Requester& by, Words) { return by.stackshot(); }},
    {"retained", 0, 0, [](Requester& by, Words) { return by.retained(); }},
    {"captures", 0, 0, [](Requester& by, Words) { return by.captures(); }},
    {"receive", 1, 1, [](Requester& by, Words words) { return by.receive(words[1]); }},
    {"release", 1, 1, [](Requester& by, Words words) { return by.release(words[1]); }},
    {"tasks", 0, 0, [](Requester& by, Words) { return by.text(Operation::tasks); }},
    {"statistics", 0, 0, [](Requester& by, Words) { return by.text(Operation::statistics); }},
    {"trace", 0, 0, [](Requester& by, Words) { return by.text(Operation::trace); }},
    {"run", 1, 9,
     [](Requester& by, Words words) { return by.plain(Operation::run_workload, rest_of(words)); }},
    {"stop", 1, 1,
     [](Requester& by, Words words) { return by.plain(Operation::stop_workload, words[1]); }},
    {"reboot", 0, 0, [](Requester& by, Words) { return by.plain(Operation::reboot); }},
    {"poweroff", 0, 0, [](Requester& by, Words) { return by.plain(Operation::power_off); }},
};

int request(const Options& options) {
    const std::vector<std::string> words =
        options.request.empty() ? std::vector<std::string>{"stackshot"} : options.request;
    const auto* const chosen =
        std::find_if(std::begin(requests), std::end(requests),
                     [&](const Request& known) { return words[0] == known.name; });
    if (chosen == std::end(requests))
        return report_failure({fmt::format("{}: no such request", words[0]), exit_usage});
    if (words.size() - 1 < chosen->least_words || words.size() - 1 > chosen->most_words)
        return report_failure(
            {fmt::format("{}: {} words behind it", words[0],
                         words.size() - 1 < chosen->least_words ? "too few" : "too many"),
             exit_usage});
    const Interruption interruption;
    auto target = TargetLink::open(options.target);
    if (!target.ok())
        return report_failure(target.failure());
    if (words[0] == "reboot" || words[0] == "poweroff")
        target.value()->leave();
    Requester requester(target.value()->link(), options);
    if (const auto failure = chosen->make(requester, words))
        return report_failure(*failure);
    return exit_complete;
}

}  // namespace

void add_request_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("request", summary);
    add_target_options(verb, options->target);
    verb.words("REQUEST", options->request, "What to ask for [stackshot]; see below");
    verb.option("-o,--output", "FILE", options->output,
                "Where the capture goes; - is standard output")
        .show_default();
    verb.option("--flags", "FLAGS", options->flags,
                "STACKSHOT_ flags by name or number, joined by commas [SAVE_LOADINFO,"
                "GET_GLOBAL_MEM_STATS,THREAD_WAITINFO]");
    verb.flag("--plain", options->plain, "Do not let the unikernel compress the capture");
    verb.option("--pid", "N", options->pid, "Only this task").range(0, 99999);
    verb.option("--delta-from", "FILE", options->delta_from,
                "Only what has changed since the capture in this file (the last one in it)");
    verb.option("--size-hint", "BYTES", options->size_hint,
                "How large the unikernel's buffer should be at least")
        .size();
    verb.option("--workload", "TEXT", options->workload,
                "Start this workload first: \"fleet tasks=5\"");
    verb.flag("--fresh", options->fresh, "Do not go on from FILE.part");
    verb.details(details);
    verb.action([options] { return request(*options); });
}

}  // namespace tools
