#include "tools/link.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <random>

#include "tools/console_text.hpp"
#include "tools/interruption.hpp"

namespace tools {

using namespace kcdata::serial;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

/// Signals and the line's own times are looked at so often at least.
constexpr milliseconds longest_wait{200};

std::uint64_t microseconds() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                          steady_clock::now().time_since_epoch())
                                          .count());
}

std::uint32_t draw_session() {
    std::random_device device;
    return std::uniform_int_distribution<std::uint32_t>(1)(device);
}

/// Frames as they are kept in a file.
class KeptFrame final : public ByteSink {
  public:
    kcdata::kern_return write(std::span<const std::byte> bytes) override {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        return kcdata::KERN_SUCCESS;
    }
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_{};
};

}  // namespace

Link::Link(Connection& connection, const LinkOptions& options)
    : connection_(connection),
      hide_console_(options.hide_console),
      host_(*this, *this, draw_session(), options.host) {}

std::optional<Failure> Link::connect() {
    doing_ = "connecting";
    host_.connect(microseconds());
    return wait();
}

Expected<std::vector<std::byte>> Link::request(Operation operation,
                                               std::span<const std::byte> body) {
    doing_ = operation_name(operation);
    if (const auto error = host_.request(operation, body, microseconds());
        error != kcdata::KERN_SUCCESS)
        return Failure{fmt::format("{}: {}", doing_, kcdata::kern_return_name(error))};
    if (const auto failure = wait())
        return *failure;
    return std::move(result_);
}

Expected<ObjectDescription> Link::request_object(Operation operation,
                                                 std::span<const std::byte> body) {
    auto answer = request(operation, body);
    if (!answer.ok())
        return answer.failure();
    ObjectDescription object;
    if (!decode_body(std::span<const std::byte>(answer.value()), object))
        return Failure{fmt::format("{}: the answer is no description of an object",
                                   operation_name(operation))};
    return object;
}

Expected<std::vector<std::byte>> Link::pull(const ObjectDescription& object,
                                            const std::string& kept) {
    doing_ = "receiving";
    kept_name_ = kept;
    if (!kept.empty()) {
        kept_ = Descriptor(::open(kept.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
        if (!kept_.valid())
            return system_failure("opening " + kept, errno);
    }
    meter_.restart();
    const auto begin = steady_clock::now();
    std::optional<Failure> failure;
    if (const auto error = host_.pull(object, microseconds()); error != kcdata::KERN_SUCCESS)
        failure = Failure{fmt::format("{}: {}", doing_, kcdata::kern_return_name(error))};
    else
        failure = wait();
    pull_time_ = steady_clock::now() - begin;
    kept_.reset();
    meter_.clear();
    if (failure) {
        host_.cancel_pull();
        return *failure;
    }
    return std::move(result_);
}

std::optional<Failure> Link::change_baud_rate(std::uint32_t baud_rate) {
    doing_ = "baud";
    if (const auto error = host_.change_baud_rate(baud_rate, microseconds());
        error != kcdata::KERN_SUCCESS)
        return Failure{fmt::format("{}: {}", doing_, kcdata::kern_return_name(error))};
    return wait();
}

std::optional<Failure> Link::idle(milliseconds time) {
    doing_ = "waiting";
    return wait(steady_clock::now() + time);
}

std::optional<Failure> Link::wait(std::optional<steady_clock::time_point> end) {
    // A call may be over at once.
    std::array<std::byte, 1 << 16> buffer;
    while (!over_ && !failure_) {
        auto timeout = longest_wait;
        const std::uint64_t now = microseconds();
        if (const auto due = host_.deadline())
            timeout = std::min(timeout, milliseconds(*due <= now ? 0 : (*due - now) / 1000 + 1));
        if (end) {
            const auto left = std::chrono::ceil<milliseconds>(*end - steady_clock::now());
            if (left <= milliseconds(0))
                break;
            timeout = std::min(timeout, left);
        }
        const Source::Read read = connection_.read(buffer, timeout);
        switch (read.state) {
            case Source::State::data:
                host_.receive(std::span(buffer).first(read.size), microseconds());
                break;
            case Source::State::end:
                fail(
                    {fmt::format("{} ended while {}", connection_.name(), doing_), exit_no_target});
                break;
            case Source::State::failed:
                fail({read.failure});
                break;
            case Source::State::interrupted:
                fail({"interrupted", exit_interrupted});
                break;
            case Source::State::timeout:
                break;
        }
        host_.tick(microseconds());
    }
    over_ = false;
    auto failure = std::move(failure_);
    failure_.reset();
    if (failure)
        clear_line();
    return failure;
}

/// The first failure is the one to tell.
void Link::fail(Failure failure) {
    if (!failure_)
        failure_ = std::move(failure);
}

void Link::clear_line() {
    meter_.clear();
    if (!at_line_start_)
        std::fputc('\n', stderr);
    at_line_start_ = true;
}

void Link::text(std::span<const std::byte> bytes) {
    if (hide_console_)
        return;
    const std::string shown = console_text(bytes);
    if (shown.empty())
        return;
    meter_.clear();
    at_line_start_ = shown.back() == '\n';
    std::fwrite(shown.data(), 1, shown.size(), stderr);
}

void Link::connected(const HelloAnswer& answer) {
    hello_ = answer;
    over_ = true;
}

void Link::answered(const Answer& answer) {
    if (answer.head.result != kcdata::KERN_SUCCESS)
        fail({fmt::format("{}: the unikernel refuses: {}", operation_name(answer.head.operation),
                          kcdata::kern_return_name(answer.head.result))});
    result_.assign(answer.body.begin(), answer.body.end());
    over_ = true;
}

void Link::pulled(const ObjectDescription&, std::vector<std::byte> bytes) {
    result_ = std::move(bytes);
    over_ = true;
}

void Link::progress(const Progress& progress) {
    if (at_line_start_)
        meter_.show(progress.received, progress.total);
}

void Link::piece(const DataFrame& frame) {
    if (!kept_.valid())
        return;
    KeptFrame whole;
    (void)write_data_frame(whole, Encoding::binary, frame);
    for (auto rest = whole.bytes(); !rest.empty();) {
        const ssize_t size = ::write(kept_.get(), rest.data(), rest.size());
        if (size < 0 && errno != EINTR)
            return fail(system_failure("writing " + kept_name_, errno));
        rest = rest.subspan(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    }
}

void Link::failed(LinkError error, kcdata::kern_return result) {
    std::string text = fmt::format("{}: {}", doing_, link_error_text(error));
    if (result != kcdata::KERN_SUCCESS)
        text += fmt::format(": {}", kcdata::kern_return_name(result));
    const bool gone = error == LinkError::no_answer || error == LinkError::too_lossy ||
                      error == LinkError::target_restarted;
    fail({text, gone ? exit_no_target : exit_failure});
}

bool Link::set_baud_rate(std::uint32_t baud_rate) {
    return connection_.set_baud(baud_rate);
}

kcdata::kern_return Link::write(std::span<const std::byte> bytes) {
    frame_.insert(frame_.end(), bytes.begin(), bytes.end());
    return kcdata::KERN_SUCCESS;
}

kcdata::kern_return Link::end_frame() {
    const auto failure = connection_.write(frame_);
    frame_.clear();
    if (!failure)
        return kcdata::KERN_SUCCESS;
    fail(*failure);
    return kcdata::KERN_FAILURE;
}

}  // namespace tools
