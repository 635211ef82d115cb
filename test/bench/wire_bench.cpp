// What the link costs and carries: both ends' code, on the host.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kcdata/compressed_writer.hpp"
#include "kcdata/records.hpp"
#include "kcdata/serial/host.hpp"
#include "kcdata/serial/target.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "stackshot/stackshot.hpp"
#include "test/bench/figure.hpp"
#include "test/unit/kcdata/link_model.hpp"
#include "test/unit/stackshot/fake_system.hpp"

namespace {

using namespace kcdata;
using namespace kcdata::serial;
using Clock = std::chrono::steady_clock;
using link_model::Bytes;

void must(bool holds, const std::string& what) {
    if (!holds)
        throw std::runtime_error(what);
}

/// Compressed bytes look like this.
Bytes random_bytes(std::size_t size) {
    std::mt19937_64 random(1);
    Bytes bytes(size);
    for (std::byte& byte : bytes)
        byte = static_cast<std::byte>(random());
    return bytes;
}

std::uint64_t now() {
    static const auto begin = Clock::now();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin).count());
}

/// One direction of a serial line in real time: a UART's queue, which a thread empties at the rate
/// of the line into a pipe that the other end waits at. Where the queue is empty, line time is
/// lost.
class PacedPipe final : public ByteSink {
  public:
    explicit PacedPipe(std::uint32_t baud_rate)
        : baud_rate_(baud_rate), pump_([this] { pump(); }) {}
    ~PacedPipe() {
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
        }
        changed_.notify_all();
        pump_.join();
    }

    /// Waits while the queue is full.
    kern_return write(std::span<const std::byte> bytes) override {
        std::unique_lock lock(mutex_);
        for (const std::byte byte : bytes) {
            changed_.wait(lock, [&] { return queue_.size() < queue_size || over_; });
            if (queue_.empty())
                changed_.notify_all();
            queue_.push_back(byte);
        }
        return KERN_SUCCESS;
    }
    /// What has come through; waits for it until `deadline`.
    Bytes read(std::uint64_t deadline) {
        std::unique_lock lock(mutex_);
        const std::uint64_t time = now();
        if (deadline > time)
            arrived_.wait_for(lock, std::chrono::microseconds(deadline - time),
                              [&] { return !pipe_.empty() || woken_; });
        woken_ = false;
        return std::exchange(pipe_, {});
    }
    /// Ends a read().
    void wake() {
        {
            const std::lock_guard lock(mutex_);
            woken_ = true;
        }
        arrived_.notify_all();
    }

  private:
    /// As the image's driver has.
    static constexpr std::size_t queue_size = 8192;

    void pump() {
        std::unique_lock lock(mutex_);
        const double microseconds = 1e7 / baud_rate_;
        while (!over_) {
            changed_.wait(lock, [&] { return !queue_.empty() || over_; });
            // The line begins again, or goes on without a gap.
            auto free = static_cast<double>(now());
            while (!queue_.empty()) {
                const auto due = static_cast<double>(now());
                bool moved = false;
                for (; !queue_.empty() && free + microseconds <= due; free += microseconds) {
                    pipe_.push_back(queue_.front());
                    queue_.pop_front();
                    moved = true;
                }
                if (moved) {
                    changed_.notify_all();
                    arrived_.notify_all();
                }
                lock.unlock();
                std::this_thread::sleep_for(std::chrono::microseconds(200));
                lock.lock();
                if (over_)
                    return;
            }
        }
    }

    const std::uint32_t baud_rate_;
    std::mutex mutex_;
    std::condition_variable changed_, arrived_;
    std::deque<std::byte> queue_;
    Bytes pipe_;
    bool over_ = false, woken_ = false;
    std::thread pump_;
};

/// Bytes of an object for each byte that the line could have carried from the pull to its end, in
/// percent: threads and time are real.
double goodput(std::uint32_t baud_rate, std::size_t size) {
    PacedPipe to_host(baud_rate);
    PacedPipe to_target(baud_rate);
    link_model::Commands commands;
    const ObjectDescription object = commands.add(random_bytes(size), ObjectKind::capture);

    std::atomic<bool> over{false};
    std::thread target_thread([&] {
        Target target(commands, to_host, {.boot = 1, .baud_rate = baud_rate});
        while (!over) {
            const Bytes bytes = to_target.read(target.owes() ? 0 : now() + 100'000);
            target.receive(bytes, now());
            (void)target.send_next();
            target.tick(now());
        }
    });
    link_model::Told told;
    Host host(told, to_target, 7);
    const auto run = [&] {
        while (host.busy()) {
            host.receive(to_host.read(host.deadline().value_or(now())), now());
            host.tick(now());
        }
    };
    host.connect(now());
    run();
    must(host.connected(), "no connection");
    const std::uint64_t begin = now();
    (void)host.pull(object, begin);
    run();
    const auto time = static_cast<double>(now() - begin) * 1e-6;
    over = true;
    to_target.wake();
    target_thread.join();
    must(told.objects_.size() == 1 && told.objects_[0].bytes == commands.objects_[0].bytes,
         "the object did not arrive");
    return 100 * static_cast<double>(size) / (time * baud_rate / 10);
}

/// Bytes the line carries for an object, in virtual time, as that makes no difference to what is
/// sent.
std::size_t bytes_on_line(const Bytes& bytes) {
    link_model::Link link({.baud_rate = 3'000'000});
    must(link.connect(), "no connection");
    const ObjectDescription object = link.commands_.add(bytes, ObjectKind::capture);
    const std::uint64_t before = link.to_host_.sent_;
    (void)link.host_->pull(object, link.now_);
    must(link.settle(3'600'000'000) && link.told_.objects_.size() == 1,
         "the object did not arrive");
    return link.to_host_.sent_ - before;
}

/// What the line carries beyond an object of this size, in percent of it.
double framing_overhead(std::size_t size) {
    return 100 *
           (static_cast<double>(bytes_on_line(random_bytes(size))) / static_cast<double>(size) - 1);
}

Bytes taken(FakeSystem& system, const stackshot::Request& request) {
    auto result = stackshot::take_stackshot(system, request);
    must(result.ok(), kern_return_name(result.error()));
    const auto data = result->data();
    Bytes bytes(data.begin(), data.end());
    system.free(result->buffer);
    return bytes;
}

/// As a capture is sent by default.
Bytes compressed(std::span<const std::byte> capture) {
    const ItemHeader begin = load_header(capture.data());
    Bytes buffer(capture.size() + 4096);
    Bytes memory(CompressedWriter::memory_size(default_zlib_parameters));
    CompressedWriter writer(buffer, memory);
    must(writer.begin(begin.type, begin.flags) == KERN_SUCCESS &&
             writer.append_items(capture.subspan(
                 sizeof(ItemHeader), capture.size() - 2 * sizeof(ItemHeader))) == KERN_SUCCESS &&
             writer.end() == KERN_SUCCESS,
         "the capture was not compressed");
    buffer.resize(writer.used());
    return buffer;
}

/// A delta of 100 tasks with 100 threads each, none of which has run since the capture before:
/// what the line carries, in percent of the full capture's kcdata.
double delta_ratio() {
    constexpr std::uint64_t timestamp = 50'000'000'000;
    FakeSystem system(2);
    std::mt19937_64 random(1);
    for (int index = 0; index < 100; ++index) {
        FakeSystem::Task& task = system.add_task("task" + std::to_string(index), 100, 8);
        task.facts.start_time = timestamp / 2;
        for (FakeSystem::Thread& thread : task.threads) {
            // Each was made runnable, ran and blocked within the last second.
            thread.facts.last_made_runnable_time =
                timestamp - 1'000'000'000 + random() % 900'000'000;
            thread.facts.last_run_time =
                thread.facts.last_made_runnable_time + random() % 1'000'000;
            thread.facts.ss_flags &= ~kcdata::kThreadOnCore;
        }
    }
    stackshot::Request request{stackshot::Request::all_pids, STACKSHOT_KCDATA_FORMAT};
    const Bytes full = taken(system, request);
    request.flags |= STACKSHOT_COLLECT_DELTA_SNAPSHOT;
    request.delta_timestamp = timestamp;
    const Bytes delta = taken(system, request);
    must(delta.size() < full.size(), "the delta is no smaller");
    return 100 * static_cast<double>(bytes_on_line(compressed(delta))) /
           static_cast<double>(full.size());
}

}  // namespace

int main() {
    bench::figure("wire.framing_overhead", framing_overhead(1 << 20), "%");
    bench::figure("wire.delta_ratio", delta_ratio(), "%");
    bench::figure("wire.goodput_115200", goodput(115200, 64 << 10), "% of the line");
    // What else the machine does only ever takes away.
    double best = 0;
    for (int round = 0; round < 5; ++round)
        best = std::max(best, goodput(3'000'000, 1 << 20));
    bench::figure("wire.goodput_3000000", best, "% of the line");
}
