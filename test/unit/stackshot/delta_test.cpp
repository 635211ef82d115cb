#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "fake_system.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "taken.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

constexpr std::uint64_t timestamp = 5'000'000;
constexpr std::uint64_t before = timestamp;  // what ran until then has not run since
constexpr std::uint64_t after = timestamp + 1;
constexpr std::uint64_t delta_flags = STACKSHOT_KCDATA_FORMAT | STACKSHOT_COLLECT_DELTA_SNAPSHOT;

Request delta_request(std::uint64_t flags = delta_flags) {
    Request request{Request::all_pids, flags};
    request.delta_timestamp = timestamp;
    return request;
}

/// A task that began long ago, none of whose threads has run since.
FakeSystem::Task& add_quiet_task(FakeSystem& system, const std::string& name, std::size_t threads) {
    FakeSystem::Task& task = system.add_task(name, threads, 4);
    task.facts.start_time = before;
    for (auto& thread : task.threads) {
        thread.facts.last_run_time = before;
        thread.facts.ss_flags &= ~kThreadOnCore;
    }
    return task;
}

thread_delta_snapshot_v3 expected_delta(const ThreadFacts& facts) {
    thread_delta_snapshot_v3 snapshot{};
    snapshot.tds_thread_id = facts.thread_id;
    snapshot.tds_ss_flags = facts.ss_flags;
    snapshot.tds_last_made_runnable_time = facts.last_made_runnable_time;
    snapshot.tds_state = facts.state;
    snapshot.tds_sched_flags = facts.sched_flags;
    snapshot.tds_base_priority = facts.base_priority;
    snapshot.tds_sched_priority = facts.sched_priority;
    snapshot.tds_eqos = facts.effective_qos;
    snapshot.tds_rqos = facts.requested_qos;
    snapshot.tds_rqos_override = facts.requested_qos_override;
    snapshot.tds_io_tier = facts.io_tier;
    snapshot.tds_requested_policy = facts.requested_policy;
    snapshot.tds_effective_policy = facts.effective_policy;
    return snapshot;
}

/// The ids of the threads a task has in full, and those it has shortly, in order.
std::vector<std::uint64_t> full_ids(const ParsedTask& task) {
    std::vector<std::uint64_t> ids;
    for (const ParsedThread& thread : task.threads)
        ids.push_back(thread.id);
    return ids;
}
std::vector<std::uint64_t> short_ids(const ParsedTask& task) {
    std::vector<std::uint64_t> ids;
    for (const auto& thread : task.unchanged)
        ids.push_back(thread.tds_thread_id);
    return ids;
}

}  // namespace

TEST_CASE("a delta is marked as one and tells since when, instead of what never changes") {
    FakeSystem system(2);
    add_quiet_task(system, "task", 2);
    Taken delta(system, delta_request(delta_flags | STACKSHOT_GET_GLOBAL_MEM_STATS));
    CHECK(delta.parsed.items.front().type == 0xde17a59a);
    const Item* const since = find(delta.parsed, STACKSHOT_KCTYPE_DELTA_SINCE_TIMESTAMP);
    REQUIRE(since != nullptr);
    CHECK(payload_as<std::uint64_t>(*since) == timestamp);
    for (const std::uint32_t type :
         {STACKSHOT_KCTYPE_THREAD_POLICY_VERSION, STACKSHOT_KCTYPE_KERN_PAGE_SIZE,
          STACKSHOT_KCTYPE_OSVERSION, STACKSHOT_KCTYPE_OS_BUILD_VERSION, STACKSHOT_KCTYPE_BOOTARGS,
          KCDATA_TYPE_TIMEBASE})
        CHECK(count_of(delta.parsed, type) == 0);
    // What the next delta goes on from, and what changes.
    for (const std::uint32_t type :
         {KCDATA_TYPE_MACH_ABSOLUTE_TIME, KCDATA_TYPE_USECS_SINCE_EPOCH,
          STACKSHOT_KCTYPE_GLOBAL_MEM_STATS, STACKSHOT_KCTYPE_STACKSHOT_DURATION})
        CHECK(count_of(delta.parsed, type) == 1);
    CHECK(described(delta.parsed, "stackshot_in_flags") ==
          (delta_flags | STACKSHOT_GET_GLOBAL_MEM_STATS));
    CHECK(described(delta.parsed, "stackshot_out_flags") ==
          (delta_flags | STACKSHOT_GET_GLOBAL_MEM_STATS));

    Taken full(system, {});
    CHECK(full.parsed.items.front().type == 0x59a25807);
    CHECK(count_of(full.parsed, STACKSHOT_KCTYPE_DELTA_SINCE_TIMESTAMP) == 0);
}

TEST_CASE("what has not run since is there shortly: every task, every thread") {
    const CpuIndex cpus = GENERATE(1U, 4U);
    const bool single = GENERATE(false, true);
    FakeSystem system(cpus);
    system.constant.tunables.single_threaded = single;
    add_quiet_task(system, "kernel_task", 3);
    add_quiet_task(system, "empty", 0);
    add_quiet_task(system, "large", 700);
    Taken delta(system, delta_request());
    REQUIRE(delta.tasks.size() == 3);
    for (std::size_t t = 0; t < 3; ++t) {
        const TaskFacts& facts = system.tasks[t].facts;
        const ParsedTask& task = delta.tasks[t];
        CHECK(task.id == facts.unique_pid);
        CHECK_FALSE(task.snapshot);
        CHECK_FALSE(task.kernel_image);
        REQUIRE(task.delta);
        task_delta_snapshot_v2 expected{};
        expected.tds_unique_pid = facts.unique_pid;
        expected.tds_ss_flags = facts.ss_flags | kUser64_p | kTaskSharedRegionNone;
        expected.tds_user_time_in_terminated_threads = facts.user_time_in_terminated_threads;
        expected.tds_system_time_in_terminated_threads = facts.system_time_in_terminated_threads;
        expected.tds_task_size = facts.task_size;
        expected.tds_max_resident_size = facts.max_resident_size;
        expected.tds_suspend_count = facts.suspend_count;
        expected.tds_faults = facts.faults;
        CHECK(bytes_of(*task.delta) == bytes_of(expected));
        CHECK(task.threads.empty());
        REQUIRE(task.unchanged.size() == system.tasks[t].threads.size());
        for (std::size_t n = 0; n < task.unchanged.size(); ++n)
            CHECK(bytes_of(task.unchanged[n]) ==
                  bytes_of(expected_delta(system.tasks[t].threads[n].facts)));
    }
    CHECK(described(delta.parsed, "stackshot_tasks_count") == 3);
    CHECK(described(delta.parsed, "stackshot_threads_count") == system.thread_count());
    CHECK(system.missed_signals() == 0);
}

TEST_CASE("a thread that ran since, or is on core, is there in full, and so is its task") {
    FakeSystem system(2);
    add_quiet_task(system, "quiet", 4);
    FakeSystem::Task& task = add_quiet_task(system, "task", 6);
    task.threads[1].facts.last_run_time = after;
    task.threads[3].facts.ss_flags |= kThreadOnCore;
    // A CPU's idle thread is on core even while the CPU does something else.
    task.threads[4].facts.state |= SS_TH_IDLE;
    const auto id = [&](std::size_t n) { return task.threads[n].facts.thread_id; };
    Taken delta(system, delta_request());
    REQUIRE(delta.tasks.size() == 2);
    CHECK(delta.tasks[0].delta);
    CHECK(delta.tasks[0].unchanged.size() == 4);
    CHECK_FALSE(delta.tasks[1].delta);
    REQUIRE(delta.tasks[1].snapshot);
    CHECK(full_ids(delta.tasks[1]) == std::vector{id(1), id(3), id(4)});
    CHECK(short_ids(delta.tasks[1]) == std::vector{id(0), id(2), id(5)});
    CHECK(delta.tasks[1].threads[0].frames == task.threads[1].expected_frames);
    CHECK(described(delta.parsed, "stackshot_threads_count") == 10);
}

TEST_CASE("a task that began since, has no beginning, or is in teardown is there in full") {
    FakeSystem system(2);
    add_quiet_task(system, "new", 2).facts.start_time = after;
    add_quiet_task(system, "timeless", 2).facts.start_time = 0;
    add_quiet_task(system, "ending", 2).facts.active = false;
    add_quiet_task(system, "old", 2);
    Taken delta(system, delta_request());
    REQUIRE(delta.tasks.size() == 4);
    CHECK(delta.tasks[0].snapshot);
    CHECK(delta.tasks[1].snapshot);
    CHECK(delta.tasks[2].transition);
    CHECK(delta.tasks[3].delta);
    for (const ParsedTask& task : delta.tasks) {
        CHECK((task.snapshot.has_value() + task.transition.has_value() + task.delta.has_value()) ==
              1);
        // Full or not, the threads have not run.
        CHECK(task.unchanged.size() == 2);
        CHECK(task.threads.empty());
    }
}

TEST_CASE("a delta since 0 holds in full whatever has run at all") {
    FakeSystem system(2);
    FakeSystem::Task& task = add_quiet_task(system, "task", 3);
    task.threads[1].facts.last_run_time = 0;
    Request request = delta_request();
    request.delta_timestamp = 0;
    Taken delta(system, request);
    REQUIRE(delta.tasks.size() == 1);
    CHECK(delta.tasks[0].snapshot);
    CHECK(delta.tasks[0].threads.size() == 2);
    CHECK(short_ids(delta.tasks[0]) == std::vector{task.threads[1].facts.thread_id});
}

TEST_CASE("threads without a kernel stack are left out of a delta too, if the request says so") {
    FakeSystem system(2);
    FakeSystem::Task& task = add_quiet_task(system, "task", 4);
    task.threads[0].stack_result = KERN_NOT_IN_SET;
    task.threads[1].stack_result = KERN_NOT_IN_SET;
    task.threads[1].facts.last_run_time = after;
    Taken delta(system, delta_request(delta_flags | STACKSHOT_ACTIVE_KERNEL_THREADS_ONLY));
    REQUIRE(delta.tasks.size() == 1);
    // Left out as it is, the one that ran does not count.
    CHECK(delta.tasks[0].delta);
    CHECK(short_ids(delta.tasks[0]) ==
          std::vector{task.threads[2].facts.thread_id, task.threads[3].facts.thread_id});
    CHECK(delta.tasks[0].threads.empty());
    CHECK(described(delta.parsed, "stackshot_threads_count") == 2);
}

TEST_CASE("a thread on a CPU that did not stop is there in full") {
    FakeSystem system(4);
    FakeSystem::Task& task = add_quiet_task(system, "task", 8);
    system.absent = 0b0100;
    for (auto& thread : task.threads)
        thread.facts.last_cpu = 0;
    task.threads[5].facts.last_cpu = 2;
    Taken delta(system, delta_request());
    CHECK(full_ids(delta.tasks[0]) == std::vector{task.threads[5].facts.thread_id});
    CHECK(delta.tasks[0].unchanged.size() == 7);
}

TEST_CASE("a process-scoped delta holds one task, of which it takes what changed") {
    FakeSystem system(3);
    for (int n = 0; n < 5; ++n)
        add_quiet_task(system, "task" + std::to_string(n), 3);
    system.tasks[3].threads[2].facts.last_run_time = after;
    Request request = delta_request();
    request.pid = 3;
    Taken delta(system, request);
    REQUIRE(delta.tasks.size() == 1);
    CHECK(delta.tasks[0].id == system.tasks[3].facts.unique_pid);
    CHECK(delta.tasks[0].threads.size() == 1);
    CHECK(delta.tasks[0].unchanged.size() == 2);
    CHECK(delta.statistics().workers == 1);
}

TEST_CASE("large tasks are the same in a delta however their threads are divided") {
    std::vector<std::vector<std::uint64_t>> full, unchanged;
    for (const CpuIndex cpus : {1U, 2U, 8U}) {
        FakeSystem system(cpus);
        FakeSystem::Task& task = add_quiet_task(system, "large", 900);
        for (std::size_t n = 0; n < 900; n += 1 + n % 3)
            task.threads[n].facts.last_run_time = after;
        for (auto& thread : task.threads)
            thread.facts.last_cpu = 0;
        Taken delta(system, delta_request());
        REQUIRE(delta.tasks.size() == 1);
        full.push_back(full_ids(delta.tasks[0]));
        unchanged.push_back(short_ids(delta.tasks[0]));
        CHECK(full.back().size() + unchanged.back().size() == 900);
        CHECK(described(delta.parsed, "stackshot_threads_count") == 900);
    }
    CHECK(full[0] == full[1]);
    CHECK(full[0] == full[2]);
    CHECK(unchanged[0] == unchanged[1]);
    CHECK(unchanged[0] == unchanged[2]);
}

TEST_CASE(
    "a delta of a system whose every read fails once ends with the error, and loses nothing") {
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    add_quiet_task(system, "one", 3);
    add_quiet_task(system, "two", 3).threads[1].facts.last_run_time = after;
    const std::size_t failures = fail_each_read(system, delta_request());
    // The list's elements and its end, each task with its first thread, each thread with its next.
    // Between two CPUs, which of the reads is the n-th is not the same each time.
    CHECK(failures >= (single ? 3 + 2 * 2 + 2 * 6 : 2 + 6));
}
