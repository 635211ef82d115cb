#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kcdata/serial/host.hpp"
#include "tools/descriptor.hpp"
#include "tools/failure.hpp"
#include "tools/progress_meter.hpp"
#include "tools/source.hpp"

namespace tools {

struct LinkOptions {
    kcdata::serial::HostOptions host{};
    /// Console text goes to standard error.
    bool hide_console = false;
};

/// A host's requests to the unikernel at the other end of a line, one after the other: each call
/// waits for its answer, shows console text and progress meanwhile, and ends with a Failure when
/// the unikernel refuses, does not answer, or an Interruption is requested.
class Link final : private kcdata::serial::HostHandler, private kcdata::serial::ByteSink {
  public:
    /// `connection` outlives this.
    Link(Connection& connection, const LinkOptions& options);

    /// First of all.
    std::optional<Failure> connect();
    const kcdata::serial::HelloAnswer& hello() const { return hello_; }

    /// The body of the answer.
    Expected<std::vector<std::byte>> request(kcdata::serial::Operation operation,
                                             std::span<const std::byte> body = {});
    /// Of an operation that is answered by the description of an object.
    Expected<kcdata::serial::ObjectDescription> request_object(
        kcdata::serial::Operation operation, std::span<const std::byte> body = {});
    /// What arrived of objects before, as pull() has kept it, is not pulled again.
    void resume(std::span<const std::byte> frames) { host_.resume(frames); }
    /// The bytes of an object. What arrives is appended to the file `kept` as it does, for
    /// resume(); empty: nowhere.
    Expected<std::vector<std::byte>> pull(const kcdata::serial::ObjectDescription& object,
                                          const std::string& kept = {});
    /// Sets both ends to another rate. After a Failure they are at the one before, if the
    /// unikernel is there at all.
    std::optional<Failure> change_baud_rate(std::uint32_t baud_rate);

    /// Waits for `time`, and shows what comes.
    std::optional<Failure> idle(std::chrono::milliseconds time);

    const kcdata::serial::HostStatistics& statistics() const { return host_.statistics(); }
    /// How long the last pull took.
    std::chrono::duration<double> pull_time() const { return pull_time_; }
    /// Ends a line of the console that has begun, and takes the progress away.
    void clear_line();

  private:
    void text(std::span<const std::byte> bytes) override;
    void connected(const kcdata::serial::HelloAnswer& answer) override;
    void answered(const kcdata::serial::Answer& answer) override;
    void pulled(const kcdata::serial::ObjectDescription& object,
                std::vector<std::byte> bytes) override;
    void progress(const kcdata::serial::Progress& progress) override;
    void piece(const kcdata::serial::DataFrame& frame) override;
    void failed(kcdata::serial::LinkError error, kcdata::kern_return result) override;
    bool set_baud_rate(std::uint32_t baud_rate) override;
    kcdata::kern_return write(std::span<const std::byte> bytes) override;
    kcdata::kern_return end_frame() override;

    /// Serves the line until one of the calls above is over, or until `end`.
    std::optional<Failure> wait(std::optional<std::chrono::steady_clock::time_point> end = {});
    void fail(Failure failure);

    Connection& connection_;
    bool hide_console_;
    kcdata::serial::Host host_;
    kcdata::serial::HelloAnswer hello_{};
    ProgressMeter meter_{};
    bool at_line_start_ = true;
    std::vector<std::byte> frame_{};
    std::string kept_name_{};
    Descriptor kept_{};
    std::chrono::duration<double> pull_time_{};

    // What the call at hand came to.
    const char* doing_ = "";
    bool over_ = false;
    std::optional<Failure> failure_{};
    std::vector<std::byte> result_{};
};

}  // namespace tools
