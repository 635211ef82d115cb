#include <algorithm>

#include "kcdata/records.hpp"
#include "kernel/absolute_time.hpp"
#include "kernel/event.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/daemons.hpp"

namespace kernel::workload {
namespace {

constexpr std::uint64_t frame_milliseconds = 40;

struct Player {
    std::uint32_t decoders = 0;
    Event playing{};
    Semaphore frame_due{}, frame_decoded{};
};
constinit Player player;

[[gnu::noinline]] std::uint64_t decode_frame(std::uint64_t frame) {
    return compute(1500, frame);
}
[[gnu::noinline]] std::uint64_t mix_frame(std::uint64_t frame) {
    return compute(500, frame);
}

void media_decoder(void*) {
    for (std::uint64_t frame = 0;; frame++) {
        player.playing.wait();
        player.frame_due.wait();
        decode_frame(frame);
        player.frame_decoded.signal();
    }
}

/// One frame every 40 ms, each of them in parts, one for each decoder.
void media_clock(void*) {
    std::uint64_t due = machine::absolute_time();
    for (std::uint64_t frame = 0;; frame++) {
        player.playing.wait();
        for (std::uint32_t part = 0; part < player.decoders; part++)
            player.frame_due.signal();
        for (std::uint32_t part = 0; part < player.decoders; part++)
            player.frame_decoded.wait();
        mix_frame(frame);
        due = std::max(due, machine::absolute_time()) +
              milliseconds_to_absolute_time(frame_milliseconds);
        sleep_until(due);
    }
}

void media_control(void*) {
    for (;;) {
        player.playing.set();
        sleep_milliseconds(700);
        player.playing.clear();
        sleep_milliseconds(300);
    }
}

}  // namespace

void start_mediad(std::uint32_t threads) {
    player.decoders = threads;
    Task& task = make_task("mediad", kcdata::kTaskIsForeground);
    make_thread(task, media_control, nullptr, {}, "media.control");
    make_thread(task, media_clock, nullptr, {.priority = BASEPRI_FOREGROUND + 1}, "media.clock");
    for (std::uint32_t index = 0; index < threads; index++)
        make_thread(task, media_decoder, nullptr, {.priority = BASEPRI_FOREGROUND},
                    "media.decoder.%u", index);
    task_release(task);
}

}  // namespace kernel::workload
