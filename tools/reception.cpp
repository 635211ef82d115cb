#include "tools/reception.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "tools/capture_file.hpp"
#include "tools/console_text.hpp"

namespace tools {

using kcdata::serial::AbandonReason;
using kcdata::serial::PartialCapture;
using kcdata::serial::Progress;

Reception::Reception(ReceptionOptions options) : options_(std::move(options)), receiver_(*this) {}

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
    meter_.clear();
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
    const std::string shown = console_text(bytes);
    if (shown.empty())
        return;
    meter_.clear();
    at_line_start_ = shown.back() == '\n';
    std::fwrite(shown.data(), 1, shown.size(), stderr);
}

void Reception::complete(std::uint32_t, std::vector<std::byte> bytes) {
    if (done())
        return;
    meter_.clear();
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
    // In the middle of a line of the console there is no room.
    if (at_line_start_)
        meter_.show(progress.received, progress.total);
}

void Reception::damaged(std::uint64_t position, std::size_t size) {
    meter_.clear();
    say("damage: {} bytes of the line from byte {} on are no whole frame", size, position);
    // Damage is only a loss if a capture misses something in the end.
}

void Reception::abandoned(const PartialCapture& capture, AbandonReason reason) {
    meter_.clear();
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
    meter_.clear();
    failed_ = report_failure(failure);
}

}  // namespace tools
