#include "tools/console.hpp"

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "kcdata/serial/receiver.hpp"
#include "tools/capture_file.hpp"
#include "tools/console_text.hpp"
#include "tools/interruption.hpp"
#include "tools/reception.hpp"

namespace tools {

namespace {

using kcdata::serial::AbandonReason;
using kcdata::serial::PartialCapture;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::byte quit{']' - '@'};

/// Standard input as it is typed, if it is a terminal, for as long as this lives.
class RawTerminal {
  public:
    RawTerminal() : raw_(tcgetattr(STDIN_FILENO, &before_) == 0) {
        if (!raw_)
            return;
        termios settings = before_;
        cfmakeraw(&settings);
        // Our own lines end as always.
        settings.c_oflag = before_.c_oflag;
        raw_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &settings) == 0;
    }
    ~RawTerminal() {
        if (raw_)
            tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
    }
    RawTerminal(const RawTerminal&) = delete;
    RawTerminal& operator=(const RawTerminal&) = delete;

    bool raw() const { return raw_; }

  private:
    termios before_{};
    bool raw_;
};

class Console final : private kcdata::serial::ReceiverHandler {
  public:
    Console(Connection& connection, const ConsoleOptions& options)
        : connection_(connection), options_(options) {}

    ExitStatus run();

  private:
    void text(std::span<const std::byte> bytes) override;
    void complete(std::uint32_t capture, std::vector<std::byte> bytes) override;
    void damaged(std::uint64_t position, std::size_t size) override;
    void abandoned(const PartialCapture& capture, AbandonReason reason) override;

    /// Takes what there is to read from the line; false: nothing more will come.
    bool take_line();
    /// Takes what was typed; false: it was the wish to quit.
    bool take_input();
    void tell(const std::string& text);

    Connection& connection_;
    const ConsoleOptions& options_;
    kcdata::serial::Receiver receiver_{*this};
    Descriptor log_{};
    const RawTerminal terminal_{};
    const bool edits_ = isatty(STDOUT_FILENO) != 0;
    bool at_line_start_ = true;
    bool input_open_ = true;
    bool heard_ = !options_.starting;
    unsigned captures_ = 0;
    ExitStatus status_ = exit_complete;
};

ExitStatus Console::run() {
    if (!options_.log.empty()) {
        log_ = Descriptor(
            ::open(options_.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
        if (!log_.valid())
            return report_failure(system_failure("opening " + options_.log, errno));
    }
    if (terminal_.raw())
        tell("the console of " + connection_.name() + "; Ctrl-] ends it");
    auto last_word = steady_clock::now();
    for (;;) {
        std::array<pollfd, 2> entries = {
            pollfd{connection_.descriptor(), POLLIN, 0},
            pollfd{input_open_ && heard_ ? STDIN_FILENO : -1, POLLIN, 0}};
        const Wait wait = wait_for(entries, milliseconds(200));
        if (wait == Wait::interrupted) {
            status_ = exit_interrupted;
            break;
        }
        if (wait == Wait::failed) {
            tell(system_failure("waiting for " + connection_.name(), errno).text);
            status_ = exit_failure;
            break;
        }
        if (entries[0].revents != 0) {
            if (!take_line())
                break;
            last_word = steady_clock::now();
        }
        if (entries[1].revents != 0) {
            if (!take_input())
                break;
            last_word = steady_clock::now();
        }
        if (!input_open_ && steady_clock::now() - last_word >= seconds(options_.linger))
            break;
    }
    receiver_.finish();
    for (const PartialCapture& capture : receiver_.incomplete()) {
        tell(fmt::format("capture {:08x} is incomplete: {} of {} bytes arrived",
                         capture.progress.object, capture.progress.received,
                         capture.progress.total));
        if (status_ == exit_complete)
            status_ = exit_damaged;
    }
    if (!at_line_start_)
        std::fputs("\n", stdout);
    return status_;
}

bool Console::take_line() {
    std::array<std::byte, 1 << 16> buffer;
    const Source::Read read = connection_.read(buffer, milliseconds(0));
    const auto bytes = std::span(buffer).first(read.size);
    switch (read.state) {
        case Source::State::data:
            heard_ = true;
            if (log_.valid() && ::write(log_.get(), bytes.data(), bytes.size()) !=
                                    static_cast<ssize_t>(bytes.size())) {
                tell(system_failure("writing " + options_.log, errno).text);
                status_ = exit_failure;
                log_.reset();
            }
            receiver_.feed(bytes);
            // Before anything is said on standard error.
            std::fflush(stdout);
            return true;
        case Source::State::timeout:
        case Source::State::interrupted:
            return true;
        case Source::State::end:
            tell(connection_.name() + " ended");
            return false;
        case Source::State::failed:
            tell(read.failure);
            status_ = exit_failure;
            return false;
    }
    return false;
}

bool Console::take_input() {
    std::array<std::byte, 4096> buffer;
    const ssize_t size = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (size <= 0) {
        input_open_ = false;
        return true;
    }
    auto typed = std::span(buffer).first(static_cast<std::size_t>(size));
    bool go_on = true;
    if (terminal_.raw()) {
        const auto end = std::find(typed.begin(), typed.end(), quit);
        go_on = end == typed.end();
        typed = typed.first(static_cast<std::size_t>(end - typed.begin()));
    } else {
        std::replace(typed.begin(), typed.end(), std::byte{'\n'}, std::byte{'\r'});
    }
    // A zero would begin a frame.
    std::replace(typed.begin(), typed.end(), std::byte{0}, std::byte{' '});
    if (const auto failure = connection_.write(typed)) {
        tell(failure->text);
        status_ = failure->status;
        return false;
    }
    return go_on;
}

void Console::tell(const std::string& text) {
    if (!at_line_start_)
        std::fputs("\n", stdout);
    at_line_start_ = true;
    say(text);
}

void Console::text(std::span<const std::byte> bytes) {
    const std::string shown = console_text(bytes, edits_);
    if (shown.empty())
        return;
    at_line_start_ = shown.back() == '\n';
    std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void Console::complete(std::uint32_t, std::vector<std::byte> bytes) {
    const std::string name = Reception::file_name(options_.output, captures_);
    if (const auto failure = write_file(name, bytes)) {
        tell(failure->text);
        status_ = failure->status;
        return;
    }
    ++captures_;
    tell(fmt::format("{} bytes written to {}", bytes.size(), name));
}

void Console::damaged(std::uint64_t position, std::size_t size) {
    tell(fmt::format("damage: {} bytes of the line from byte {} on are no whole frame", size,
                     position));
}

void Console::abandoned(const PartialCapture& capture, AbandonReason) {
    tell(fmt::format("capture {:08x}, {} bytes, was not received", capture.progress.object,
                     capture.progress.total));
    status_ = exit_damaged;
}

}  // namespace

ExitStatus run_console(Connection& connection, const ConsoleOptions& options) {
    return Console(connection, options).run();
}

}  // namespace tools
