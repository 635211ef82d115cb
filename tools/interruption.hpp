#pragma once

#include <poll.h>
#include <signal.h>

#include <chrono>
#include <span>

namespace tools {

/// While one lives, SIGINT and SIGTERM do not end the program but end its waits, so that it can put
/// things in order first. One at a time.
class Interruption {
  public:
    Interruption();
    ~Interruption();
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

    /// Whether one of the signals came.
    static bool requested();
    /// The signals as they were before, for a child process.
    const sigset_t& previous_mask() const { return previous_mask_; }

  private:
    sigset_t previous_mask_{};
    struct sigaction previous_interrupt_ {};
    struct sigaction previous_terminate_ {};
};

/// What a wait for a descriptor came to.
enum class Wait { ready, timeout, interrupted, failed };

/// Waits until one of `entries` is ready, has ended or failed: which and for what, poll() tells in
/// them. Otherwise as wait_for() of one.
Wait wait_for(std::span<pollfd> entries, std::chrono::milliseconds timeout);

/// Waits until `fd` is ready for `events` (POLLIN, POLLOUT), has ended or failed. A signal that
/// came before the call ends it at once, if an Interruption lives. `failed` leaves errno.
Wait wait_for(int fd, short events, std::chrono::milliseconds timeout);

}  // namespace tools
