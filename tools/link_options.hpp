#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tools/command_line.hpp"
#include "tools/link.hpp"

namespace tools {

/// What the verbs that talk to a unikernel have in common.
struct TargetOptions {
    std::string place{};
    unsigned baud = 115200;
    std::optional<unsigned> rate{};
    unsigned timeout = 10;
    bool text_frames = false;
    bool quiet = false;

    LinkOptions link() const;
};

/// The argument TARGET, and the options above.
void add_target_options(Verb& verb, TargetOptions& options);

/// A Link over a line of its own. An Interruption lives.
class TargetLink {
  public:
    /// Opens the line, connects, and sets the rate that was asked for; if that cannot be, says so
    /// and goes on at the one there is.
    static Expected<std::unique_ptr<TargetLink>> open(const TargetOptions& options);
    /// Sets the line back to the rate it had, where the next program looks for the unikernel.
    ~TargetLink();
    TargetLink(const TargetLink&) = delete;
    TargetLink& operator=(const TargetLink&) = delete;

    Link& link() { return link_; }
    /// The line ends with the request: there is nobody to set it back.
    void leave() { changed_ = false; }

  private:
    TargetLink(std::unique_ptr<Connection> connection, const TargetOptions& options)
        : connection_(std::move(connection)), link_(*connection_, options.link()) {}

    std::unique_ptr<Connection> connection_;
    Link link_;
    unsigned baud_ = 0;
    bool changed_ = false;
};

}  // namespace tools
