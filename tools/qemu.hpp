#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/failure.hpp"
#include "tools/interruption.hpp"
#include "tools/source.hpp"

namespace tools {

/// A QEMU `virt` machine as we boot it.
struct QemuOptions {
    std::string program = "qemu-system-aarch64";
    std::string image{};
    unsigned smp = 4;
    /// Exception level the image is entered at: 1 or 2.
    unsigned el = 1;
    std::string cpu = "cortex-a72";
    std::string memory = "1G";
    std::string boot_arguments{};
    /// The UART is a Unix socket of this path; empty: QEMU's standard input and output.
    std::string socket{};
    /// Count instructions instead of following the clock: each takes 2^N ns.
    std::optional<unsigned> icount{};
    /// Handed to QEMU as they are, behind all others.
    std::vector<std::string> extra{};
};

/// The command, QEMU's program first. `host_cpus` is
/// how many CPUs this host has: with more vCPUs than that they take turns on one thread, as those
/// that wait would hold up those that work otherwise.
std::vector<std::string> qemu_command(const QemuOptions& options, unsigned host_cpus);

/// `command` as a shell would take it.
std::string shell_line(const std::vector<std::string>& command);

/// A running QEMU. It is killed when the object goes, or this program ends for any reason.
class Qemu {
  public:
    /// Starts it in a process group of its own, so that Ctrl-C reaches only us.
    static Expected<std::unique_ptr<Qemu>> start(const std::vector<std::string>& command,
                                                 const Interruption& interruption);
    ~Qemu();
    Qemu(const Qemu&) = delete;
    Qemu& operator=(const Qemu&) = delete;

    /// The other end of its line.
    Connection& uart() { return *uart_; }
    /// Waits up to `timeout` for QEMU's end; its wait status, if it has ended.
    std::optional<int> wait(std::chrono::milliseconds timeout);
    void kill();

  private:
    Qemu(pid_t pid, std::unique_ptr<Connection> uart) : pid_(pid), uart_(std::move(uart)) {}

    pid_t pid_;
    std::unique_ptr<Connection> uart_;
    std::optional<int> status_{};
};

}  // namespace tools
