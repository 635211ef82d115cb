// What the link costs and carries: both ends' code, on the host.

#include <time.h>

#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
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

/// Processor time of this thread, in microseconds.
std::uint64_t cpu_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec) / 1000;
}

/// Bytes of an object for each byte that the line could have carried from the pull to its end, in
/// percent. The line is paced in virtual time, so that nothing else the machine does is measured,
/// and on that clock passes the processor time that both ends' code takes, as if they had one
/// processor between them. The ends hear of bytes 1 ms after they are through.
double goodput(std::uint32_t baud_rate, std::size_t size) {
    link_model::Link link({.baud_rate = baud_rate, .damage = {.latency = 0, .read_time = 1'000}});
    link.cpu_time_ = cpu_time;
    must(link.connect(), "no connection");
    const ObjectDescription object = link.commands_.add(random_bytes(size), ObjectKind::capture);
    const link_model::Time begin = link.now_;
    (void)link.host_->pull(object, link.now_);
    must(link.settle(3'600'000'000) && link.told_.objects_.size() == 1 &&
             link.told_.objects_[0].bytes == link.commands_.objects_[0].bytes,
         "the object did not arrive");
    const auto seconds = static_cast<double>(link.now_ - begin) * 1e-6;
    return 100 * static_cast<double>(size) / (seconds * baud_rate / 10);
}

/// Bytes the line carries for an object, in virtual time, as that makes no difference to what is
/// sent.
std::size_t bytes_on_line(Bytes bytes) {
    link_model::Link link({.baud_rate = 3'000'000});
    must(link.connect(), "no connection");
    const ObjectDescription object = link.commands_.add(std::move(bytes), ObjectKind::capture);
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

constexpr std::uint64_t capture_time = 50'000'000'000;

/// 100 tasks with 100 threads each, none of which runs.
void add_idle_world(FakeSystem& system) {
    std::mt19937_64 random(1);
    for (int index = 0; index < 100; ++index) {
        FakeSystem::Task& task = system.add_task("task" + std::to_string(index), 100, 8);
        task.facts.start_time = capture_time / 2;
        for (FakeSystem::Thread& thread : task.threads) {
            // Each was made runnable, ran and blocked within the last second.
            thread.facts.last_made_runnable_time =
                capture_time - 1'000'000'000 + random() % 900'000'000;
            thread.facts.last_run_time =
                thread.facts.last_made_runnable_time + random() % 1'000'000;
            thread.facts.ss_flags &= ~kcdata::kThreadOnCore;
        }
    }
}

/// What the line carries for a delta of an idle world, in percent of its full capture's kcdata.
double delta_ratio(std::span<const std::byte> full, std::span<const std::byte> delta) {
    must(delta.size() < full.size(), "the delta is no smaller");
    return 100 * static_cast<double>(bytes_on_line(compressed(delta))) /
           static_cast<double>(full.size());
}

/// How long it takes to compress a capture, before its first byte is sent, in percent of the time
/// that the line is busy with it then.
double compression_time(std::span<const std::byte> capture, std::uint32_t baud_rate) {
    const double seconds = bench::seconds([&] { (void)compressed(capture); });
    return 100 * seconds * baud_rate / 10 / static_cast<double>(bytes_on_line(compressed(capture)));
}

}  // namespace

int main() {
    bench::figure("wire.framing_overhead", framing_overhead(1 << 20), "%");
    FakeSystem system(2);
    add_idle_world(system);
    stackshot::Request request{stackshot::Request::all_pids, STACKSHOT_KCDATA_FORMAT};
    const Bytes full = taken(system, request);
    request.flags |= STACKSHOT_COLLECT_DELTA_SNAPSHOT;
    request.delta_timestamp = capture_time;
    bench::figure("wire.delta_ratio", delta_ratio(full, taken(system, request)), "%");
    for (const std::uint32_t rate : {115'200u, 3'000'000u})
        bench::figure(("wire.compression_time_" + std::to_string(rate)).c_str(),
                      compression_time(full, rate), "% of the line's time");
    bench::figure("wire.goodput_115200", goodput(115200, 1 << 20), "% of the line");
    bench::figure("wire.goodput_3000000", goodput(3'000'000, 4 << 20), "% of the line");
}
