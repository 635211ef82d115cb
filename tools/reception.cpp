#include "tools/reception.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "tools/capture_file.hpp"
#include "tools/printable.hpp"

namespace tools {

using kcdata::serial::AbandonReason;
using kcdata::serial::PartialCapture;
using kcdata::serial::Progress;

Reception::Reception(ReceptionOptions options)
    : options_(std::move(options)), receiver_(*this), terminal_(isatty(STDERR_FILENO) != 0) {}

Reception::~Reception() {
    clear_progress();
}

std::optional<Failure> Reception::open() {
    if (options_.log.empty())
        return std::nullopt;
    log_ = Descriptor(::open(options_.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!log_.valid())
        return system_failure("opening " + options_.log, errno);
    return std::nullopt;
}

void Reception::feed(std::span<const std::byte> bytes) {
    for (auto rest = bytes; log_.valid() && !rest.empty();) {
        const ssize_t size = ::write(log_.get(), rest.data(), rest.size());
        if (size < 0 && errno != EINTR) {
            note_failure(system_failure("writing " + options_.log, errno));
            log_.reset();
        } else {
            rest = rest.subspan(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
        }
    }
    receiver_.feed(bytes);
}

bool Reception::done() const {
    return failed_ || (options_.count != 0 && written_ >= options_.count);
}

ExitStatus Reception::finish() {
    receiver_.finish();
    clear_progress();
    if (!at_line_start_)
        std::fputc('\n', stderr);
    at_line_start_ = true;
    // What is still open when everything wanted is here was not wanted.
    if (!done()) {
        for (const PartialCapture& capture : receiver_.incomplete()) {
            name_missing(capture, "is incomplete");
            salvage(capture);
        }
    }
    if (failed_)
        return *failed_;
    const bool complete = !incomplete_ && written_ > 0 && written_ >= options_.count;
    if (complete)
        return exit_complete;
    return written_ > 0 || salvaged_ > 0 ? exit_damaged : exit_failure;
}

std::string Reception::file_name(const std::string& output, unsigned index) {
    if (index == 0 || output == "-")
        return output;
    const std::filesystem::path path(output);
    std::filesystem::path name = path.stem();
    name += fmt::format("-{}", index + 1);
    name += path.extension();
    return (path.parent_path() / name).string();
}

void Reception::text(std::span<const std::byte> bytes) {
    if (options_.hide_console)
        return;
    // Noise of a strange or damaged line is none of its text: beyond ASCII it is escaped too.
    std::string shown;
    for (const char c : std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()))
        shown += static_cast<unsigned char>(c) < 0x80
                     ? printable(std::string_view(&c, 1), true)
                     : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    if (shown.empty())
        return;
    clear_progress();
    at_line_start_ = shown.back() == '\n';
    std::fwrite(shown.data(), 1, shown.size(), stderr);
}

void Reception::complete(std::uint32_t, std::vector<std::byte> bytes) {
    if (done())
        return;
    clear_progress();
    if (!at_line_start_)
        std::fputc('\n', stderr);
    at_line_start_ = true;
    const std::string name = file_name(options_.output, written_);
    if (const auto failure = write_file(name, bytes)) {
        note_failure(*failure);
        return;
    }
    ++written_;
    say("{} bytes written to {}", bytes.size(), name == "-" ? "standard output" : name);
}

void Reception::progress(const Progress& progress) {
    ++frames_;
    if (!terminal_ || progress.total == 0)
        return;
    const auto percent =
        static_cast<unsigned>(std::uint64_t{100} * progress.received / progress.total);
    // In the middle of a line of the console there is no room.
    if (!at_line_start_ || (progress_shown_ && percent == percent_shown_))
        return;
    percent_shown_ = percent;
    progress_shown_ = true;
    constexpr unsigned width = 30;
    const unsigned full = percent * width / 100;
    fmt::print(stderr, "\rreceiving [{:#<{}}{:.<{}}] {:3} % of {:.1f} KiB", "", full, "",
               width - full, percent, progress.total / 1024.0);
    std::fflush(stderr);
}

void Reception::damaged(std::uint64_t position, std::size_t size) {
    clear_progress();
    say("damage: {} bytes of the line from byte {} on are no whole frame", size, position);
    // Damage is only a loss if a capture misses something in the end.
}

void Reception::abandoned(const PartialCapture& capture, AbandonReason reason) {
    clear_progress();
    switch (reason) {
        case AbandonReason::too_many:
            name_missing(capture, "was given up, as too many others began after it");
            break;
        case AbandonReason::too_long:
            say("capture {:08x} says that it is {} bytes long: not received",
                capture.progress.object, capture.progress.total);
            incomplete_ = true;
            return;
        case AbandonReason::wrong_crc:
            say("capture {:08x}: all {} bytes are here, but their CRC is wrong: thrown away",
                capture.progress.object, capture.progress.total);
            incomplete_ = true;
            return;
    }
    salvage(capture);
}

void Reception::name_missing(const PartialCapture& capture, const char* fate) {
    const Progress& progress = capture.progress;
    incomplete_ = true;
    say("capture {:08x} {}: {} of {} bytes arrived{}", progress.object, fate, progress.received,
        progress.total, progress.end_seen ? "" : ", and the end was not seen");
    for (const auto& range : capture.missing)
        say("  missing: bytes {} to {}", range.offset,
            std::uint64_t{range.offset} + range.length - 1);
}

void Reception::salvage(const PartialCapture& capture) {
    const std::size_t good =
        capture.missing.empty() ? capture.bytes.size() : capture.missing.front().offset;
    if (good == 0 || options_.output == "-")
        return;
    const std::string name = file_name(options_.output, written_ + salvaged_) + ".partial";
    if (const auto failure = write_file(name, std::span(capture.bytes).first(good))) {
        note_failure(*failure);
        return;
    }
    ++salvaged_;
    say("  the {} bytes before the first gap are in {}", good, name);
}

void Reception::note_failure(const Failure& failure) {
    clear_progress();
    failed_ = report_failure(failure);
}

void Reception::clear_progress() {
    if (progress_shown_)
        fmt::print(stderr, "\r\x1b[K");
    progress_shown_ = false;
}

}  // namespace tools
