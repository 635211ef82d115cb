#pragma once

#include <optional>
#include <string>

#include "tools/command_line.hpp"
#include "tools/qemu.hpp"
#include "tools/reception.hpp"

namespace tools {

/// The image in QEMU, taking stackshots of itself.
struct ImageRun {
    QemuOptions qemu{};
    ReceptionOptions reception{};
    std::string workload{};  ///< empty: the image's default
    std::string append{};    ///< boot arguments
    /// How long the workload runs before the first capture.
    unsigned delay_ms = 1000;
    /// And before each further one; nothing: the image's default.
    std::optional<unsigned> interval_ms{};
    bool compress = false;
    bool verbose = false;
    /// Be its console, and take captures only when they are typed there.
    bool interactive = false;
    unsigned linger = 2;  ///< ConsoleOptions::linger

    /// Whether the image runs on until somebody ends it, and takes a stackshot when it is asked to.
    bool stays() const { return interactive || !qemu.socket.empty(); }
};

/// What is to be booted, and on what.
void add_image_options(Verb& verb, ImageRun& run);

/// Boots the image, and receives as many captures as are wanted, or lets it stay. Returns the exit
/// status.
int run_image(ImageRun& run);

}  // namespace tools
