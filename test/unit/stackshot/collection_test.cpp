#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <chrono>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "comparison.hpp"
#include "fake_system.hpp"
#include "parsed.hpp"
#include "stackshot/attempt.hpp"
#include "stackshot/estimate.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

std::size_t chain_length(const Chunk* chunk) {
    std::size_t length = 0;
    for (; chunk != nullptr; chunk = chunk->next)
        ++length;
    return length;
}

Estimate estimate_of(FakeSystem& system, const Request& request = {}) {
    return estimate_stackshot(system.facts(), system.task_count(), system.thread_count(), request);
}

/// Runs the collection of one attempt in a trap.
void collect(FakeSystem& system, Attempt& attempt) {
    Collection* const one[] = {&attempt.collection()};
    CaptureTrap body(one);
    system.trap(body);
}

/// What can be compared of a single-threaded and a parallel capture.
struct Pair {
    std::vector<std::byte> single, parallel;
    // Of the parallel one.
    std::size_t items = 0;  ///< of its queues
    CpuMask workers = 0;
    std::vector<ParsedTask> tasks;
};

/// Takes both kinds of captures in one trap.
Pair collect_both(FakeSystem& system, const Request& request, bool single_first = true) {
    const Estimate estimate = estimate_of(system, request);
    Attempt single(system);
    Attempt parallel(system);
    REQUIRE(single.prepare(request, estimate, 2 * estimate.size, Mode::single_threaded) ==
            KERN_SUCCESS);
    REQUIRE(parallel.prepare(request, estimate, 2 * estimate.size, Mode::parallel) == KERN_SUCCESS);
    Collection* both[] = {&single.collection(), &parallel.collection()};
    if (!single_first)
        std::swap(both[0], both[1]);
    CaptureTrap body(both);
    system.trap(body);
    auto a = single.assemble({});
    auto b = parallel.assemble({});
    REQUIRE(a.ok());
    REQUIRE(b.ok());
    Pair pair{.single = comparable(a->buffer.first(a->size)),
              .parallel = comparable(b->buffer.first(b->size)),
              .items = parallel.collection().items().size(),
              .workers = parallel.collection().workers(),
              .tasks = tasks_of(parse(b->buffer.first(b->size)))};
    system.free(a->buffer);
    system.free(b->buffer);
    // Nothing can be compared of what is not valid.
    REQUIRE_FALSE(pair.single.empty());
    REQUIRE_FALSE(pair.parallel.empty());
    return pair;
}

}  // namespace

TEST_CASE("single-threaded and parallel collections inside one trap are equal") {
    const CpuIndex cpus = GENERATE(1U, 2U, 3U, 4U, 8U);
    const bool single_first = GENERATE(true, false);
    FakeSystem system(cpus, cpus > 2 ? 2 : 1);
    system.add_task("kernel_task", 12, 4);
    for (int n = 0; n < 60; ++n)
        system.add_task("task" + std::to_string(n), static_cast<std::size_t>(n * 5 % 17),
                        static_cast<std::size_t>(1 + n % 40));
    system.absent = cpus == 8 ? 0b1000'0000 : 0;
    const Pair pair =
        collect_both(system,
                     {Request::all_pids, STACKSHOT_KCDATA_FORMAT | STACKSHOT_GET_GLOBAL_MEM_STATS |
                                             STACKSHOT_THREAD_WAITINFO},
                     single_first);
    CHECK(system.traps() == 1);
    CHECK(std::popcount(pair.workers) == static_cast<int>(cpus == 8 ? 7 : cpus));
    CHECK(pair.single.size() > 100'000);
    CHECK(pair.single == pair.parallel);
    CHECK(system.live_allocations() == 0);
    CHECK(system.missed_signals() == 0);
}

TEST_CASE("a large task is cut into parts, which make the same bytes as the whole") {
    const CpuIndex cpus = GENERATE(2U, 4U, 8U);
    const std::size_t threads = GENERATE(16U, 17U, 100U, 1111U, 3000U);
    FakeSystem system(cpus);
    system.add_task("kernel_task", 3, 4);
    system.add_task("large", threads, 2);
    system.add_task("small", 2, 4);
    const Pair pair = collect_both(
        system, {Request::all_pids, STACKSHOT_KCDATA_FORMAT | STACKSHOT_THREAD_WAITINFO});
    CHECK(pair.single == pair.parallel);
    REQUIRE(pair.tasks.size() == 3);
    CHECK(pair.tasks[1].threads.size() == threads);
    // As many parts as needed, or fewer when they are of even length.
    const std::size_t length = threads_per_part(threads + 5, cpus);
    const std::size_t parts = (threads + length - 1) / length;
    CHECK(pair.items <= 2 + parts);
    CHECK(pair.items >= 2 + parts - parts / 10);
    if (threads == 3000)
        CHECK(pair.items > 2 + (parts_per_cpu - 1) * cpus);
    CHECK(system.missed_signals() == 0);
}

TEST_CASE("a task that has other threads than it says is recorded all the same") {
    const CpuIndex cpus = 4;
    const std::uint32_t said = GENERATE(0U, 1U, 20U, 99U, 101U, 5000U, UINT32_MAX);
    FakeSystem system(cpus);
    system.add_task("kernel_task", 3, 4);
    system.add_task("liar", 100, 2).facts.thread_count = said;
    system.add_task("small", 2, 4);
    const Pair pair = collect_both(system, {});
    CHECK(pair.single == pair.parallel);
    REQUIRE(pair.tasks.size() == 3);
    REQUIRE(pair.tasks[1].threads.size() == 100);
    for (std::size_t n = 0; n < 100; ++n)
        CHECK(pair.tasks[1].threads[n].id == system.tasks[1].threads[n].facts.thread_id);
}

TEST_CASE("a process-scoped request that includes driver threads skips tasks part by part") {
    FakeSystem system(4);
    system.add_task("kernel_task", 100, 4);
    system.add_task("wanted", 200, 2);
    system.add_task("other", 100, 4);
    Request request;
    request.pid = 1;
    request.flags |= STACKSHOT_INCLUDE_DRIVER_THREADS_IN_KERNEL;
    CHECK(select_mode(system.facts(), request) == Mode::parallel);
    const Pair pair = collect_both(system, request);
    const Pair all = collect_both(system, {});
    CHECK(pair.items == all.items);
    REQUIRE(pair.tasks.size() == 1);
    CHECK(pair.tasks[0].id == system.tasks[1].facts.unique_pid);
    CHECK(pair.tasks[0].threads.size() == 200);
}

TEST_CASE("a thread list that runs in a circle behind a cut is an error, not a hang") {
    FakeSystem system(4);
    system.add_task("kernel_task", 3, 4);
    system.add_task("large", 1000, 2);
    // From the 700th thread it goes back to the given one, far ahead of any cut or close to one.
    const std::uint32_t back_to = GENERATE(1U, 699U, 690U, 320U);
    system.next_thread_hook = [&](TaskRef task, ThreadRef previous) -> Result<ThreadRef> {
        const auto index = static_cast<std::uint32_t>(previous);
        const std::size_t task_index = static_cast<std::size_t>(task) - 1;
        if (task_index == 1 && index == 700)
            return FakeSystem::thread_ref(1, back_to - 1);
        return index < system.tasks[task_index].threads.size()
                   ? FakeSystem::thread_ref(task_index, index)
                   : ThreadRef::none;
    };
    const Estimate estimate = estimate_of(system);
    Attempt attempt(system);
    REQUIRE(attempt.prepare({}, estimate, 8 * estimate.size, Mode::parallel) == KERN_SUCCESS);
    collect(system, attempt);
    CHECK(attempt.assemble({}).error() == KERN_FAILURE);
}

TEST_CASE("on P and E cores the main CPU is a P core, and the output is the same") {
    const std::vector<ClusterType> types = GENERATE(std::vector{ClusterType::E, ClusterType::P},
                                                    std::vector{ClusterType::P, ClusterType::E},
                                                    std::vector{ClusterType::E, ClusterType::E});
    FakeSystem system(6, 2);
    system.cluster_of_cpu = {0, 0, 0, 1, 1, 1};
    std::copy(types.begin(), types.end(), system.constant.cluster_types.begin());
    system.add_task("kernel_task", 12, 4);
    for (int n = 0; n < 60; ++n)
        system.add_task("task" + std::to_string(n), static_cast<std::size_t>(n * 5 % 17),
                        static_cast<std::size_t>(1 + n % 40));
    system.add_task("large", 500, 3);
    // Only the main CPU walks the list of tasks; the single-threaded collection, on CPU 0, does
    // too.
    std::set<CpuIndex> walkers;
    system.next_task_hook = [&](TaskRef previous) -> Result<TaskRef> {
        static std::mutex mutex;
        const std::scoped_lock lock(mutex);
        walkers.insert(FakeSystem::this_cpu());
        const auto index = static_cast<std::size_t>(previous);
        return index < system.tasks.size() ? TaskRef{index + 1} : TaskRef::none;
    };
    const Pair pair = collect_both(system, {});
    CHECK(pair.single == pair.parallel);
    const bool handed_on = types[0] == ClusterType::E && types[1] == ClusterType::P;
    CHECK(walkers == (handed_on ? std::set<CpuIndex>{0, 3} : std::set<CpuIndex>{0}));
    CHECK(system.missed_signals() == 0);
}

TEST_CASE(
    "panics, page tables, one process and a boot argument make a collection single-threaded") {
    SystemFacts facts;
    CHECK(select_mode(facts, {}) == Mode::parallel);
    CHECK(select_mode(facts, {Request::all_pids, STACKSHOT_KCDATA_FORMAT | STACKSHOT_FROM_PANIC}) ==
          Mode::single_threaded);
    CHECK(
        select_mode(facts, {Request::all_pids, STACKSHOT_KCDATA_FORMAT | STACKSHOT_PAGE_TABLES}) ==
        Mode::single_threaded);
    CHECK(select_mode(facts, {7}) == Mode::single_threaded);
    facts.tunables.single_threaded = true;
    CHECK(select_mode(facts, {}) == Mode::single_threaded);
}

namespace {

/// A parallel collection on 4 CPUs in whose first task CPU `panicking` panics.
struct PanickingCollection {
    explicit PanickingCollection(CpuIndex panicking) : attempt(system) {
        for (int n = 0; n < 12; ++n)
            system.add_task("task" + std::to_string(n), 3, 4);
        system.task_facts_hook = [this, panicking](TaskRef) {
            // The others leave it a task.
            while (FakeSystem::this_cpu() != panicking && !panicked.load())
                std::this_thread::yield();
            if (FakeSystem::this_cpu() == panicking && !panicked.exchange(true)) {
                attempt.collection().panic(panicking);
                while (attempt.collection().working() != 0)
                    std::this_thread::yield();
                throw FakeSystem::PanicSpin{};
            }
        };
        const Estimate estimate = estimate_of(system);
        REQUIRE(attempt.prepare({}, estimate, 2 * estimate.size, Mode::parallel) == KERN_SUCCESS);
    }
    void run() { CHECK_THROWS_AS(collect(system, attempt), FakeSystem::PanicSpin); }

    FakeSystem system{4};
    Attempt attempt;
    std::atomic<bool> panicked{false};
};

}  // namespace

TEST_CASE("when a CPU panics all others leave the collection") {
    const CpuIndex panicking = GENERATE(0U, 2U);
    PanickingCollection one(panicking);
    one.run();
    CHECK(one.panicked);
    CHECK(one.attempt.assemble({}).error() == KERN_ABORTED);
    CHECK(one.system.overdue() == 0);
    CHECK(one.system.missed_signals() == 0);
}

TEST_CASE("a panic when no collection is active changes nothing") {
    FakeSystem system(2);
    system.add_task("kernel_task", 3, 4);
    const Estimate estimate = estimate_of(system);
    Attempt attempt(system);
    REQUIRE(attempt.prepare({}, estimate, estimate.size, Mode::parallel) == KERN_SUCCESS);
    Collection* const one[] = {&attempt.collection()};
    CaptureTrap body(one);
    system.trap(body);
    CHECK(attempt.collection().conclude() == KERN_SUCCESS);
    const CpuMask workers = attempt.collection().workers();
    body.panic(1);
    CHECK(body.working() == 0);
    CHECK(attempt.collection().workers() == workers);
}

TEST_CASE("a panic before the trap's body began keeps it from beginning") {
    FakeSystem system(3);
    system.add_task("kernel_task", 3, 4);
    const Mode mode = GENERATE(Mode::single_threaded, Mode::parallel);
    Attempt attempt(system);
    REQUIRE(attempt.prepare({}, {}, 100'000, mode) == KERN_SUCCESS);
    attempt.collection().panic(1);
    CHECK_THROWS_AS(collect(system, attempt), FakeSystem::PanicSpin);
    CHECK(attempt.assemble({}).error() == KERN_ABORTED);
    CHECK(attempt.collection().counts().tasks == 0);
}

TEST_CASE("a collection that failed does not touch the one that runs after it") {
    FakeSystem system(3);
    for (int n = 0; n < 20; ++n)
        system.add_task("task" + std::to_string(n), 5, 5);
    const Estimate estimate = estimate_of(system);
    Attempt small(system);
    Attempt large(system);
    // Room for the stack buffers and the queue, but not for all records.
    REQUIRE(small.prepare({}, estimate, 36'000, Mode::parallel) == KERN_SUCCESS);
    REQUIRE(large.prepare({}, estimate, estimate.size, Mode::parallel) == KERN_SUCCESS);
    Collection* const both[] = {&small.collection(), &large.collection()};
    CaptureTrap body(both);
    system.trap(body);
    CHECK(small.assemble({}).error() == KERN_INSUFFICIENT_BUFFER_SIZE);
    auto assembled = large.assemble({});
    REQUIRE(assembled.ok());
    const Parsed parsed = parse(assembled->buffer.first(assembled->size));
    CHECK(parsed.error == ReadError::none);
    CHECK(tasks_of(parsed).size() == 20);
    system.free(assembled->buffer);
    CHECK(system.missed_signals() == 0);
}

TEST_CASE("whichever allocation fails, the collection ends with an error on all CPUs") {
    const CpuIndex cpus = GENERATE(1U, 2U, 4U);
    FakeSystem system(cpus, cpus > 1 ? 2 : 1);
    for (int n = 0; n < 3; ++n)
        system.add_task("task" + std::to_string(n), 4, 6);
    Estimate estimate = estimate_of(system);
    // No chunk is larger than its first item, so that every item is an allocation of its own.
    estimate.smallest_chunk = 0;
    const std::size_t fixed =
        cpus * Unwinder::max_frames * sizeof(std::uint64_t) +
        WorkQueues::storage_size(estimate.queue_capacity + max_extra_parts(cpus), 1);
    std::size_t failures = 0;
    std::size_t successes = 0;
    std::set<std::uint64_t> taken_at_failure;
    std::size_t chunks = 0;
    // 0: not even one stack buffer. Behind the stack buffers and the queue each granule counts.
    std::size_t size = 0;
    for (; successes < 10;
         size = size < fixed ? std::min(size + 480, fixed) : size + Arena::granularity) {
        REQUIRE(size < fixed + 100'000);
        Attempt attempt(system);
        REQUIRE(attempt.prepare({}, estimate, size, Mode::parallel) == KERN_SUCCESS);
        collect(system, attempt);
        auto assembled = attempt.assemble({});
        if (!assembled.ok()) {
            REQUIRE(assembled.error() == KERN_INSUFFICIENT_BUFFER_SIZE);
            taken_at_failure.insert(attempt.collection().latencies()[0].buffer);
            ++failures;
            continue;
        }
        ++successes;
        chunks = chain_length(attempt.collection().pre_task_records());
        for (const WorkItem& item : attempt.collection().items())
            chunks += chain_length(item.records);
        const Parsed parsed = parse(assembled->buffer.first(assembled->size));
        REQUIRE(parsed.error == ReadError::none);
        REQUIRE(tasks_of(parsed).size() == 3);
        system.free(assembled->buffer);
    }
    CHECK(failures > 100);
    // One CPU takes the same chunks in the same order each time: every one of them was the one
    // there was no memory for.
    if (cpus == 1) {
        CHECK(chunks > 60);
        CHECK(taken_at_failure.size() == chunks);
    }
    CHECK(system.live_allocations() == 0);
    CHECK(system.missed_signals() == 0);
}

namespace {

/// Runs a parallel collection on 4 CPUs in which CPU 2 stays in its first task while `hangs`
/// says so.
void run_with_hanging_worker(FakeSystem& system, Attempt& attempt, std::function<bool()> hangs) {
    for (int n = 0; n < 12; ++n)
        system.add_task("task" + std::to_string(n), 3, 4);
    std::atomic<bool> hanging{false};
    system.task_facts_hook = [&](TaskRef) {
        // The others leave it a task.
        while (FakeSystem::this_cpu() != 2 && !hanging.load())
            std::this_thread::yield();
        hanging.store(true);
        while (FakeSystem::this_cpu() == 2 && hangs())
            std::this_thread::yield();
    };
    const Estimate estimate = estimate_of(system);
    REQUIRE(attempt.prepare({}, estimate, 2 * estimate.size, Mode::parallel) == KERN_SUCCESS);
    collect(system, attempt);
}

}  // namespace

TEST_CASE("a worker that does not finish within the timeout is named, not waited for") {
    FakeSystem system(4);
    system.constant.tunables.worker_timeout = 20;
    system.event_stream_period = std::chrono::milliseconds(20);
    {
        Attempt attempt(system);
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        CHECK_THROWS_AS(run_with_hanging_worker(system, attempt,
                                                [&] {
                                                    return system.overdue() == 0 &&
                                                           std::chrono::steady_clock::now() <
                                                               deadline;
                                                }),
                        FakeSystem::WorkersOverdue);
        // The others may have been on their way out.
        CHECK((system.overdue() & 0b0100) != 0);
        CHECK((system.overdue() & ~CpuMask{0b1110}) == 0);
        // The panic that follows does not wait for them once more.
        attempt.collection().panic(0);
        CHECK((attempt.collection().working() & system.overdue()) == 0);
    }
    CHECK(system.live_allocations() == 0);
}

TEST_CASE("a worker that is slow, but within the timeout, is waited for") {
    FakeSystem system(4);
    system.constant.tunables.worker_timeout = UINT64_MAX / 2;
    system.event_stream_period = std::chrono::milliseconds(5);
    {
        Attempt attempt(system);
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
        run_with_hanging_worker(system, attempt,
                                [&] { return std::chrono::steady_clock::now() < end; });
        CHECK(system.overdue() == 0);
        auto assembled = attempt.assemble({});
        REQUIRE(assembled.ok());
        CHECK(tasks_of(parse(assembled->buffer.first(assembled->size))).size() == 12);
        system.free(assembled->buffer);
    }
    CHECK(system.live_allocations() == 0);
}

TEST_CASE("a collection that no trap ran is an error, not an empty capture") {
    FakeSystem system(2);
    Attempt attempt(system);
    const Mode mode = GENERATE(Mode::single_threaded, Mode::parallel);
    REQUIRE(attempt.prepare({}, {}, 100'000, mode) == KERN_SUCCESS);
    CHECK(attempt.assemble({}).error() == KERN_FAILURE);
}
