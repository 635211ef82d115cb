// The capture in a panic: alone, in memory given before, compressed, plain or of few threads.

#include "stackshot/panic_capture.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "fake_system.hpp"
#include "kcdata/format.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "parsed.hpp"
#include "stackshot/assembly.hpp"
#include "stackshot/attempt.hpp"
#include "stackshot/capture.hpp"
#include "stackshot/estimate.hpp"
#include "stackshot/post_trap_producer.hpp"
#include "test/unit/kcdata/inflated.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

/// Memory with a fence behind it, which shows writes out of bounds.
class Memory {
  public:
    explicit Memory(std::size_t size)
        : size_(size), bytes_(new (std::align_val_t{64}) std::byte[size + fence]) {
        std::fill_n(bytes_, size + fence, pattern);
    }
    ~Memory() {
        CHECK(std::all_of(bytes_ + size_, bytes_ + size_ + fence,
                          [](std::byte byte) { return byte == pattern; }));
        operator delete[](bytes_, std::align_val_t{64});
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    std::span<std::byte> span() { return {bytes_, size_}; }

  private:
    static constexpr std::size_t fence = 64;
    static constexpr std::byte pattern{0x5a};
    std::size_t size_;
    std::byte* bytes_;
};

/// A system stopped for good, in which CPU 1 has panicked and CPU 3 is not to be stopped. Some of
/// its threads have no kernel stack.
struct Stopped {
    explicit Stopped(std::size_t tasks = 30) : system(4) {
        system.add_tasks(tasks);
        for (auto& task : system.tasks)
            for (std::size_t n = 0; n < task.threads.size(); ++n)
                task.threads[n].stack_result = n % 4 == 1 ? KERN_SUCCESS : KERN_NOT_IN_SET;
        system.absent = 0b1000;
        FakeSystem::become_cpu(1);
    }
    ~Stopped() { FakeSystem::become_cpu(0); }

    Result<PanicCapture> take(Memory& memory) {
        FakeQuiesced quiesced(1);
        return take_panic_capture(system, quiesced, memory.span());
    }
    static bool has_stack(const FakeSystem::Thread& thread) {
        return thread.stack_result == KERN_SUCCESS;
    }
    std::size_t threads(bool with_stack_only) const {
        std::size_t count = 0;
        for (const auto& task : system.tasks)
            for (const auto& thread : task.threads)
                count += has_stack(thread) || !with_stack_only ? 1U : 0U;
        return count;
    }

    FakeSystem system;
};

/// What the capture holds, whatever it is packed in; it has to be sound.
struct Contents {
    explicit Contents(const PanicCapture& capture)
        : compressed((capture.flags & STACKSHOT_DO_COMPRESS) != 0),
          bytes(compressed ? inflated(capture.data)
                           : std::vector<std::byte>(capture.data.begin(), capture.data.end())),
          parsed(parse(bytes)),
          tasks(tasks_of(parsed)) {
        CHECK(parsed.error == ReadError::none);
        // No longer than it says.
        if (!compressed)
            CHECK(parsed.end == capture.data.size());
        CHECK(described(parsed, "stackshot_in_flags") == capture.flags);
        CHECK(described(parsed, "stackshot_tasks_count") == tasks.size());
        CHECK(described(parsed, "stackshot_threads_count") == threads());
        CHECK(capture.tasks == tasks.size());
        CHECK(capture.threads == threads());
    }
    std::size_t threads() const {
        std::size_t count = 0;
        for (const ParsedTask& task : tasks)
            count += task.threads.size();
        return count;
    }

    bool compressed;
    std::vector<std::byte> bytes;
    Parsed parsed;
    std::vector<ParsedTask> tasks;
};

}  // namespace

TEST_CASE("a panic is captured whole and compressed, by the CPU that panicked alone") {
    Stopped stopped;
    Memory memory(MiB);
    const auto capture = stopped.take(memory);
    REQUIRE(capture.ok());
    CHECK(capture.value().flags == panic_flags);
    CHECK(capture.value().tries == 1);
    const Contents contents(capture.value());
    CHECK(contents.tasks.size() == stopped.system.tasks.size());
    CHECK(contents.threads() == stopped.threads(false));
    for (std::size_t task = 0; task < contents.tasks.size(); ++task)
        for (std::size_t n = 0; n < contents.tasks[task].threads.size(); ++n) {
            const auto& thread = stopped.system.tasks[task].threads[n];
            CHECK(contents.tasks[task].threads[n].id == thread.facts.thread_id);
            if (Stopped::has_stack(thread))
                CHECK(contents.tasks[task].threads[n].frames == thread.expected_frames);
        }
    CHECK(described(contents.parsed, "stackshot_absent_cpus") == 0b1000);
    CHECK(find(contents.parsed, STACKSHOT_KCTYPE_LATENCY_INFO) == nullptr);
    CHECK(stopped.system.traps() == 0);
    CHECK(stopped.system.live_allocations() == 0);
    CHECK(stopped.system.peak_bytes() == 0);
    CHECK_FALSE(stopped.system.locked());
}

TEST_CASE("a panic's capture shows that it is one, and no flag that was not met") {
    Stopped stopped;
    Memory memory(MiB);
    const auto capture = stopped.take(memory);
    REQUIRE(capture.ok());
    const Contents contents(capture.value());
    const auto out = described(contents.parsed, "stackshot_out_flags").value_or(0);
    CHECK((out & STACKSHOT_FROM_PANIC) != 0);
    CHECK((out & ~panic_flags) == 0);
    CHECK((out & unmet_flags) == 0);
    CHECK((panic_flags & ~out & ~unmet_flags) == 0);
}

TEST_CASE("in memory of any size a panic's capture is sound, or it says that it does not fit") {
    Stopped stopped;
    // From too little for anything, over plain and few threads, plain, to compressed.
    std::vector<std::uint64_t> kinds;
    for (std::size_t size = 0; size < 700'000; size += size < 150'000 ? 509 : 10'007) {
        INFO(size << " bytes");
        Memory memory(size);
        const auto capture = stopped.take(memory);
        if (!capture.ok()) {
            REQUIRE(capture.error() == KERN_INSUFFICIENT_BUFFER_SIZE);
            // More memory is not worse.
            REQUIRE(kinds.empty());
            continue;
        }
        const PanicCapture& taken = capture.value();
        CHECK(taken.data.data() >= memory.span().data());
        CHECK(taken.data.data() + taken.data.size() <= memory.span().data() + size);
        const Contents contents(taken);
        const bool few = (taken.flags & STACKSHOT_ACTIVE_KERNEL_THREADS_ONLY) != 0;
        CHECK(contents.threads() == stopped.threads(few));
        if (!contents.compressed)
            CHECK(described(contents.parsed, "stackshot_tries") == taken.tries);
        if (kinds.empty() || kinds.back() != taken.flags)
            kinds.push_back(taken.flags);
    }
    constexpr std::uint64_t plain = panic_flags & ~STACKSHOT_DO_COMPRESS;
    CHECK(kinds == std::vector<std::uint64_t>{plain | STACKSHOT_ACTIVE_KERNEL_THREADS_ONLY, plain,
                                              panic_flags});
    CHECK(stopped.system.live_allocations() == 0);
}

TEST_CASE("a capture that is not compressed in the end tells of the tries before") {
    Stopped stopped;
    // Not enough for zlib's state.
    Memory memory(compression_memory_size());
    const auto capture = stopped.take(memory);
    REQUIRE(capture.ok());
    CHECK(capture.value().tries == 2);
    CHECK(capture.value().flags == (panic_flags & ~STACKSHOT_DO_COMPRESS));
    const Contents contents(capture.value());
    CHECK(contents.tasks.size() == stopped.system.tasks.size());
}

TEST_CASE("a panic's capture of corrupt lists fails, and says so") {
    Stopped stopped;
    stopped.system.next_task_hook = [](TaskRef) -> Result<TaskRef> { return KERN_FAILURE; };
    Memory memory(MiB);
    CHECK(stopped.take(memory).error() == KERN_FAILURE);
}

TEST_CASE("a panic inside an ordinary capture is captured all the same") {
    FakeSystem system(4);
    system.add_tasks(30);
    const Mode mode = GENERATE(Mode::single_threaded, Mode::parallel);
    const Estimate estimate =
        estimate_stackshot(system.facts(), system.task_count(), system.thread_count(), {});
    Attempt attempt(system);
    REQUIRE(attempt.prepare({}, estimate, 2 * estimate.size, mode) == KERN_SUCCESS);
    Memory memory(MiB);
    std::optional<Result<PanicCapture>> capture;
    std::atomic<int> looks{0};
    system.task_facts_hook = [&](TaskRef) {
        // Once: the panic's own capture comes here too.
        if (looks.fetch_add(1) != 3)
            return;
        const CpuIndex self = FakeSystem::this_cpu();
        attempt.collection().panic(self);
        while (attempt.collection().working() != 0)
            system.wait_for_event();
        FakeQuiesced quiesced(self);
        capture = take_panic_capture(system, quiesced, memory.span());
        throw FakeSystem::PanicSpin{};
    };
    Collection* const one[] = {&attempt.collection()};
    CaptureTrap body(one);
    CHECK_THROWS_AS(system.trap(body), FakeSystem::PanicSpin);
    REQUIRE(capture.has_value());
    REQUIRE(capture->ok());
    const Contents contents(capture->value());
    CHECK(contents.tasks.size() == system.tasks.size());
}

TEST_CASE("services behind the trap are not asked in a panic") {
    struct Service final : PostTrapProducer {
        std::size_t room(const Request&) override { return 0; }
        kern_return record(Writer&, const Request&) override { return KERN_FAILURE; }
    } service;
    PostTrapProducer* const services[] = {&service};
    Stopped stopped;
    stopped.system.constant.post_trap_producers = services;
    Memory memory(MiB);
    CHECK(stopped.take(memory).ok());
}

TEST_CASE("memory for a panic's capture is a share of all, within XNU's size and the maximum") {
    constexpr std::uint64_t GiB = std::uint64_t{1} << 30;
    SystemFacts facts;
    facts.memory_size = 16 * MiB;
    CHECK(panic_memory_size(facts) == 1 * MiB);
    facts.memory_size = 128 * MiB;
    CHECK(panic_memory_size(facts) == 2 * MiB);
    facts.memory_size = 1 * GiB;
    CHECK(panic_memory_size(facts) == 8 * MiB);
    facts.memory_size = 64 * GiB;
    CHECK(panic_memory_size(facts) == 64 * MiB);
    facts.tunables.max_tracebuf_size = 8192;
    CHECK(panic_memory_size(facts) == 1 * MiB);
}
