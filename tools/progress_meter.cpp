#include "tools/progress_meter.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace tools {

namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// How often the bar may change, and how often a line is written where there is none.
constexpr milliseconds redraw_interval{100};
constexpr seconds line_interval{10};
/// A shorter time tells no rate.
constexpr milliseconds rate_time{200};

std::string time_text(double left) {
    const auto all = static_cast<unsigned long>(left + 0.5);
    return all < 60 ? fmt::format("{} s", all) : fmt::format("{} min {:02} s", all / 60, all % 60);
}

}  // namespace

ProgressMeter::ProgressMeter() : terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressMeter::restart() {
    clear();
    total_ = 0;
}

std::optional<double> ProgressMeter::rate() const {
    if (total_ == 0 || last_ - begin_ < rate_time)
        return std::nullopt;
    return static_cast<double>(done_ - first_) / duration<double>(last_ - begin_).count();
}

void ProgressMeter::show(std::uint64_t done, std::uint64_t total) {
    const auto now = Clock::now();
    if (total == 0)
        return;
    if (total != total_ || done < done_) {
        total_ = total;
        first_ = done;
        begin_ = told_ = now;
        percent_ = 101;
    }
    done_ = done;
    last_ = now;
    const auto percent = static_cast<unsigned>(100 * done / total);
    if (!terminal_) {
        if (now - told_ < line_interval)
            return;
    } else if (drawn_ && (percent == percent_ || now - told_ < redraw_interval) && done != total) {
        return;
    }
    told_ = now;
    percent_ = percent;

    std::string text =
        fmt::format("{:3} % of {:.1f} KiB", percent, static_cast<double>(total) / 1024);
    if (const auto speed = rate(); speed && *speed > 0)
        text += fmt::format(", {:.1f} KiB/s, {} left", *speed / 1024,
                            time_text(static_cast<double>(total - done) / *speed));
    if (!terminal_) {
        fmt::print(stderr, "stackshot: receiving: {}\n", text);
        return;
    }
    constexpr unsigned width = 30;
    const unsigned full = percent * width / 100;
    fmt::print(stderr, "\r\x1b[Kreceiving [{:#<{}}{:.<{}}] {}", "", full, "", width - full, text);
    std::fflush(stderr);
    drawn_ = true;
}

void ProgressMeter::clear() {
    if (drawn_)
        fmt::print(stderr, "\r\x1b[K");
    drawn_ = false;
}

}  // namespace tools
