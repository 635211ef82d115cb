#include "tools/delta.hpp"

#include <catch2/catch_test_macros.hpp>

#include "kcdata/records.hpp"

using namespace tools;

namespace {

Snapshot whole() {
    Snapshot snapshot;
    snapshot.absolute_time = 100;
    TaskSnapshot& task = snapshot.tasks.emplace_back();
    task.unique_pid = 7;
    task.pid = 42;
    task.name = "worker";
    for (const std::uint64_t id : {1u, 2u}) {
        ThreadSnapshot& thread = task.threads.emplace_back();
        thread.id = id;
        thread.name = "name";
        thread.state = kcdata::SS_TH_WAIT;
        thread.kernel_stack = {0x1000 * id};
        thread.sched_priority = 31;
        thread.user_usec = 5;
    }
    return snapshot;
}

/// Thread 1 ran on, thread 2 did not.
Snapshot delta() {
    Snapshot snapshot = whole();
    snapshot.delta = true;
    snapshot.delta_since = 100;
    snapshot.absolute_time = 200;
    TaskSnapshot& task = snapshot.tasks.front();
    task.threads.resize(1);
    task.threads[0].kernel_stack = {0x1004};
    ThreadSnapshot& unchanged = task.unchanged_threads.emplace_back();
    unchanged.id = 2;
    unchanged.state = kcdata::SS_TH_WAIT;
    unchanged.sched_priority = 47;
    return snapshot;
}

}  // namespace

TEST_CASE("an unchanged thread gets what only the capture before tells, and keeps what the delta") {
    Snapshot snapshot = delta();
    CHECK(complete_delta(snapshot, whole()).empty());
    const TaskSnapshot& task = snapshot.tasks.front();
    CHECK(task.unchanged_threads.empty());
    REQUIRE(task.threads.size() == 2);
    CHECK(task.threads[0].kernel_stack == std::vector<std::uint64_t>{0x1004});
    CHECK_FALSE(task.threads[0].unchanged);
    CHECK(task.threads[1].unchanged);
    CHECK(task.threads[1].name == "name");
    CHECK(task.threads[1].user_usec == 5u);
    CHECK(task.threads[1].kernel_stack == std::vector<std::uint64_t>{0x2000});
    CHECK(task.threads[1].sched_priority == 47);
}

TEST_CASE("an unchanged task gets its name and pid from the capture before") {
    Snapshot snapshot = delta();
    TaskSnapshot& task = snapshot.tasks.front();
    task.unchanged = true;
    task.pid.reset();
    task.name.clear();
    CHECK(complete_delta(snapshot, whole()).empty());
    CHECK(task.pid == 42);
    CHECK(task.name == "worker");
}

TEST_CASE("a delta is not completed from a capture before the time it goes on from") {
    Snapshot snapshot = delta();
    Snapshot base = whole();
    base.absolute_time = 99;
    CHECK(complete_delta(snapshot, base).find("goes on from 100") != std::string::npos);
    CHECK(snapshot.tasks.front().unchanged_threads.size() == 1);
    base.absolute_time = 150;  // thread 2 has not run since 100
    CHECK(complete_delta(snapshot, base).empty());
}

TEST_CASE("an unchanged thread that is not in the capture before is kept, and counted") {
    Snapshot snapshot = delta();
    Snapshot base = whole();
    base.tasks.front().threads.resize(1);
    CHECK(complete_delta(snapshot, base).starts_with("1 thread is not in the capture before"));
    REQUIRE(snapshot.tasks.front().threads.size() == 2);
    CHECK_FALSE(snapshot.tasks.front().threads[1].kernel_stack);
}

TEST_CASE("a delta gets what does not change from the capture before: without it, no times") {
    Snapshot snapshot = delta();
    Snapshot base = whole();
    base.timebase = Timebase{125, 3};
    base.kernel = LoadInfo{0x1000, {7}};
    base.os_version = "Darwin";
    CHECK(complete_delta(snapshot, base).empty());
    CHECK(snapshot.nanoseconds(3) == 125.0);
    CHECK(snapshot.kernel->uuid[0] == 7);
    CHECK(snapshot.os_version == "Darwin");
}

TEST_CASE("what is no delta stays as it is") {
    Snapshot snapshot = whole();
    CHECK(complete_delta(snapshot, delta()).empty());
    CHECK_FALSE(snapshot.tasks.front().threads[0].unchanged);
}
