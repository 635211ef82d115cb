#include "tools/interruption.hpp"

#include <algorithm>
#include <cerrno>

namespace tools {

namespace {

volatile sig_atomic_t signal_came = 0;

void note_signal(int) {
    signal_came = 1;
}

}  // namespace

Interruption::Interruption() {
    // Blocked except inside ppoll: a signal between looking and waiting is not lost.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &previous_mask_);
    signal_came = 0;
    struct sigaction action {};
    action.sa_handler = note_signal;
    sigaction(SIGINT, &action, &previous_interrupt_);
    sigaction(SIGTERM, &action, &previous_terminate_);
}

Interruption::~Interruption() {
    sigaction(SIGINT, &previous_interrupt_, nullptr);
    sigaction(SIGTERM, &previous_terminate_, nullptr);
    sigprocmask(SIG_SETMASK, &previous_mask_, nullptr);
}

bool Interruption::requested() {
    return signal_came != 0;
}

Wait wait_for(int fd, short events, std::chrono::milliseconds timeout) {
    pollfd entry{fd, events, 0};
    return wait_for(std::span(&entry, 1), timeout);
}

Wait wait_for(std::span<pollfd> entries, std::chrono::milliseconds timeout) {
    using namespace std::chrono;
    const auto deadline = steady_clock::now() + timeout;
    sigset_t open;
    sigprocmask(SIG_BLOCK, nullptr, &open);
    sigdelset(&open, SIGINT);
    sigdelset(&open, SIGTERM);
    for (;;) {
        if (Interruption::requested())
            return Wait::interrupted;
        const auto left =
            std::max(nanoseconds{0}, duration_cast<nanoseconds>(deadline - steady_clock::now()));
        const timespec limit{static_cast<time_t>(left.count() / 1'000'000'000),
                             static_cast<long>(left.count() % 1'000'000'000)};
        const int count = ppoll(entries.data(), entries.size(), &limit, &open);
        if (count > 0)
            return Wait::ready;
        if (count == 0)
            return Wait::timeout;
        if (errno != EINTR)
            return Wait::failed;
    }
}

}  // namespace tools
