#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tools/descriptor.hpp"
#include "tools/failure.hpp"

namespace tools {

/// Where the bytes of a line come from: a terminal device, a socket, QEMU, a pipe, a log file.
class Source {
  public:
    enum class State {
        data,         ///< `size` bytes are there, at least one
        end,          ///< there will be no more
        timeout,      ///< none came in time
        interrupted,  ///< Interruption::requested()
        failed,       ///< `failure` says why
    };
    struct Read {
        State state = State::failed;
        std::size_t size = 0;
        std::string failure{};
    };

    virtual ~Source() = default;
    /// Waits for bytes and puts what is there, not more, into `buffer`.
    virtual Read read(std::span<std::byte> buffer, std::chrono::milliseconds timeout) = 0;
    /// What it is, for messages.
    virtual const std::string& name() const = 0;
};

/// A live line: a Source that takes bytes too.
class Connection : public Source {
  public:
    /// Writes all of `bytes`, waiting a while for an other end that takes none.
    virtual std::optional<Failure> write(std::span<const std::byte> bytes) = 0;
    /// Sets the rate; false: it cannot run at that. What has no rate runs at any.
    virtual bool set_baud(unsigned baud) = 0;
    /// What to poll for bytes to read.
    virtual int descriptor() const = 0;
};

/// A Source over an open descriptor, which it owns.
std::unique_ptr<Source> source_of(Descriptor descriptor, std::string name);
/// A Connection over two open descriptors, which it owns; without `output` it writes to the one it
/// reads from.
std::unique_ptr<Connection> connection_of(Descriptor input, Descriptor output, std::string name);

/// Opens a live line. `place` is the path of a terminal device (set to raw, 8N1, at `baud` bits a
/// second), of a Unix socket (also unix:PATH) or of a pipe; tcp:HOST:PORT; or - for standard input.
/// Fails with exit_no_target where nothing is to be connected to.
Expected<std::unique_ptr<Source>> open_line(const std::string& place, unsigned baud);
/// The same for both directions: not a pipe, nor standard input.
Expected<std::unique_ptr<Connection>> open_connection(const std::string& place, unsigned baud);

/// Opens a log of a line, plain or compressed by gzip; - is standard input.
Expected<std::unique_ptr<Source>> open_log(const std::string& path);

}  // namespace tools
