// What blocked threads wait for, as their task tells it.

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "fake_system.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "parsed.hpp"
#include "stackshot/wait_log.hpp"
#include "taken.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

constexpr std::uint64_t flags = STACKSHOT_KCDATA_FORMAT | STACKSHOT_THREAD_WAITINFO;

/// A task whose threads wait for nothing.
FakeSystem::Task& add_running_task(FakeSystem& system, std::size_t threads) {
    FakeSystem::Task& task = system.add_task("task", threads, 3);
    for (auto& thread : task.threads) {
        thread.facts.state = SS_TH_RUN;
        thread.wait = {};
    }
    return task;
}

void block(FakeSystem::Thread& thread, const WaitFacts& wait) {
    thread.facts.state = SS_TH_WAIT;
    thread.wait = wait;
}

/// The payload of a stackshot_thread_waitinfo_v2, put together by the offsets of the reference.
std::array<std::uint8_t, 31> wait_info_bytes(std::uint64_t waiter, const WaitFacts& wait,
                                             std::int16_t label = 0) {
    std::array<std::uint8_t, 31> bytes{};
    std::memcpy(&bytes[0], &wait.owner, 8);
    std::memcpy(&bytes[8], &waiter, 8);
    std::memcpy(&bytes[16], &wait.context, 8);
    bytes[24] = wait.wait_type;
    std::memcpy(&bytes[25], &label, 2);
    std::memcpy(&bytes[27], &wait.wait_flags, 4);
    return bytes;
}
std::array<std::uint8_t, 28> turnstile_info_bytes(std::uint64_t waiter, const WaitFacts& wait,
                                                  std::int16_t label = 0) {
    std::array<std::uint8_t, 28> bytes{};
    std::memcpy(&bytes[0], &waiter, 8);
    std::memcpy(&bytes[8], &wait.turnstile_context, 8);
    bytes[16] = wait.turnstile_priority;
    bytes[17] = wait.number_of_hops;
    std::memcpy(&bytes[18], &wait.turnstile_flags, 8);
    std::memcpy(&bytes[26], &label, 2);
    return bytes;
}

bool same(const auto& record, const auto& bytes) {
    return sizeof(record) == bytes.size() && std::memcmp(&record, bytes.data(), bytes.size()) == 0;
}

/// Whether `parsed` tells of the waiting threads of `task`, and only of them, in their order.
void check_waits(const ParsedTask& parsed, const FakeSystem::Task& task) {
    std::vector<ThreadWait> expected;
    for (const auto& thread : task.threads)
        if ((thread.facts.state & SS_TH_WAIT) != 0 && thread.wait)
            expected.push_back({thread.facts.thread_id, *thread.wait});
    REQUIRE(parsed.wait_infos.size() == expected.size());
    REQUIRE(parsed.turnstile_infos.size() == expected.size());
    for (std::size_t n = 0; n < expected.size(); ++n) {
        CHECK(
            same(parsed.wait_infos[n], wait_info_bytes(expected[n].thread_id, expected[n].facts)));
        CHECK(same(parsed.turnstile_infos[n],
                   turnstile_info_bytes(expected[n].thread_id, expected[n].facts)));
    }
}

}  // namespace

TEST_CASE("a task tells what each of its blocked threads waits for, in either mode") {
    const bool single = GENERATE(false, true);
    FakeSystem system(single ? 1 : 4);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(40);
    Taken taken(system, {Request::all_pids, flags});
    REQUIRE(taken.tasks.size() == 40);
    std::size_t waits = 0;
    for (std::size_t t = 0; t < taken.tasks.size(); ++t) {
        check_waits(taken.tasks[t], system.tasks[t]);
        waits += taken.tasks[t].wait_infos.size();
    }
    CHECK(waits > 50);
    CHECK(described(taken.parsed, "stackshot_out_flags") == flags);
}

TEST_CASE("every wait type, special owner and turnstile status is told as it is found") {
    const std::array<std::uint8_t, 10> types = {kThreadWaitKernelMutex,
                                                kThreadWaitPortReceive,
                                                kThreadWaitPortSend,
                                                kThreadWaitSemaphore,
                                                kThreadWaitKernelRWLockRead,
                                                kThreadWaitKernelRWLockWrite,
                                                kThreadWaitKernelRWLockUpgrade,
                                                kThreadWaitPThreadCondVar,
                                                kThreadWaitSleepWithInheritor,
                                                kThreadWaitOnProcess};
    const std::array<std::uint64_t, 5> owners = {0, 4711, STACKSHOT_WAITOWNER_KERNEL,
                                                 STACKSHOT_WAITOWNER_PORT_LOCKED,
                                                 STACKSHOT_WAITOWNER_MTXSPIN};
    const std::array<std::uint64_t, 5> statuses = {
        STACKSHOT_TURNSTILE_STATUS_UNKNOWN, STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ,
        STACKSHOT_TURNSTILE_STATUS_THREAD, STACKSHOT_TURNSTILE_STATUS_BLOCKED_ON_TASK,
        STACKSHOT_TURNSTILE_STATUS_HELD_IPLOCK};
    FakeSystem system(2);
    auto& task = add_running_task(system, types.size() * owners.size() * statuses.size());
    std::size_t n = 0;
    for (const std::uint8_t type : types)
        for (const std::uint64_t owner : owners)
            for (const std::uint64_t status : statuses) {
                const std::uint64_t unique = 1000 + n;
                block(task.threads[n++],
                      {.owner = owner,
                       .context = 0xffff'0000'0000'0000 + unique,
                       .wait_type = type,
                       .wait_flags = STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY,
                       .turnstile_context = unique,
                       .turnstile_priority = static_cast<std::uint8_t>(unique % 128),
                       .number_of_hops = static_cast<std::uint8_t>(1 + unique % 3),
                       .turnstile_flags = status});
            }
    Taken taken(system, {Request::all_pids, flags});
    REQUIRE(taken.tasks[0].wait_infos.size() == n);
    check_waits(taken.tasks[0], task);
}

TEST_CASE("of a thread that runs or waits for time, or without the flag, nothing is told") {
    FakeSystem system(2);
    auto& task = add_running_task(system, 4);
    block(task.threads[0], {.wait_type = kThreadWaitSemaphore});
    block(task.threads[1], {.wait_type = kThreadWaitSemaphore});
    task.threads[1].facts.state = SS_TH_RUN;
    task.threads[2].facts.state = SS_TH_WAIT;
    Taken with(system, {Request::all_pids, flags});
    REQUIRE(with.tasks[0].wait_infos.size() == 1);
    check_waits(with.tasks[0], task);
    Taken without(system, {Request::all_pids, STACKSHOT_KCDATA_FORMAT});
    CHECK(without.tasks[0].wait_infos.empty());
    CHECK(without.tasks[0].turnstile_infos.empty());
}

TEST_CASE("wait infos stand behind a task's threads, turnstile infos behind them") {
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    auto& task = add_running_task(system, 3);
    block(task.threads[0], {.wait_type = kThreadWaitSemaphore});
    Taken taken(system, {Request::all_pids, flags});
    std::vector<std::uint32_t> behind;
    bool threads_over = false;
    for (const Item& item : taken.parsed.items) {
        if (item.kind == ItemKind::container_end && item.container_id == task.facts.unique_pid)
            break;
        if (threads_over)
            behind.push_back(item.kind == ItemKind::array ? item.element_type : item.type);
        threads_over = threads_over || (item.kind == ItemKind::container_end &&
                                        item.container_id == task.threads[2].facts.thread_id);
    }
    CHECK(behind == std::vector<std::uint32_t>{STACKSHOT_KCTYPE_THREAD_WAITINFO,
                                               STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO,
                                               STACKSHOT_KCTYPE_LATENCY_INFO_TASK});
}

TEST_CASE("a task in parts has one array of all its blocked threads") {
    FakeSystem system(8);
    system.add_task("kernel_task", 3, 4);
    system.add_task("large", 3000, 2);
    system.add_task("small", 2, 4);
    Taken taken(system, {Request::all_pids, flags});
    std::size_t arrays = 0;
    for (const Item& item : taken.parsed.items)
        arrays +=
            item.kind == ItemKind::array && item.element_type == STACKSHOT_KCTYPE_THREAD_WAITINFO;
    CHECK(arrays == 3);
    for (std::size_t t = 0; t < 3; ++t)
        check_waits(taken.tasks[t], system.tasks[t]);
    CHECK(taken.tasks[1].wait_infos.size() == 750);
}

TEST_CASE("a delta tells the waits of all blocked threads, those that have not run included") {
    constexpr std::uint64_t timestamp = 5'000'000;
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    auto& task = add_running_task(system, 4);
    task.facts.start_time = timestamp;
    for (auto& thread : task.threads) {
        thread.facts.ss_flags = 0;
        thread.facts.last_run_time = timestamp;
        block(thread, {.context = thread.facts.thread_address, .wait_type = kThreadWaitSemaphore});
    }
    task.threads[2].facts.last_run_time = timestamp + 1;
    Request request{Request::all_pids, flags | STACKSHOT_COLLECT_DELTA_SNAPSHOT};
    request.delta_timestamp = timestamp;
    Taken delta(system, request);
    CHECK(delta.tasks[0].unchanged.size() == 3);
    CHECK(delta.tasks[0].threads.size() == 1);
    CHECK(delta.tasks[0].wait_infos.size() == 4);
    check_waits(delta.tasks[0], task);
}

TEST_CASE("a thread that is left out has no wait info") {
    FakeSystem system(2);
    auto& task = add_running_task(system, 4);
    for (auto& thread : task.threads)
        block(thread, {.wait_type = kThreadWaitSemaphore});
    task.threads[1].stack_result = KERN_NOT_IN_SET;
    Taken taken(system, {Request::all_pids, flags | STACKSHOT_ACTIVE_KERNEL_THREADS_ONLY});
    REQUIRE(taken.tasks[0].wait_infos.size() == 3);
    for (const auto& info : taken.tasks[0].wait_infos)
        CHECK(info.waiter != task.threads[1].facts.thread_id);
}

TEST_CASE("a task that none of the request's waits belongs to costs a process-scoped one nothing") {
    FakeSystem system(2);
    for (int n = 0; n < 3; ++n)
        for (auto& thread : add_running_task(system, 2).threads)
            block(thread, {.wait_type = kThreadWaitSemaphore});
    Taken taken(system, {1, flags});
    REQUIRE(taken.tasks.size() == 1);
    check_waits(taken.tasks[0], system.tasks[1]);
}

namespace {

/// Memory for so many blocks.
class Blocks final : public CollectionMemory {
  public:
    explicit Blocks(std::size_t count) : left_(count) {}
    std::span<std::byte> allocate(std::size_t size) override {
        if (left_ == 0)
            return {};
        --left_;
        blocks_.push_back(std::make_unique<std::uint64_t[]>(size / 8 + 1));
        return {reinterpret_cast<std::byte*>(blocks_.back().get()), size};
    }
    std::size_t taken() const { return blocks_.size(); }

  private:
    std::size_t left_;
    std::vector<std::unique_ptr<std::uint64_t[]>> blocks_{};
};

bool add(WaitLog& log, std::uint64_t thread_id) {
    ThreadWait* const place = log.place();
    if (place == nullptr)
        return false;
    place->thread_id = thread_id;
    log.add();
    return true;
}

std::vector<std::uint64_t> waiters(const WaitLog::Range& range) {
    std::vector<std::uint64_t> ids;
    range.for_each([&ids](const ThreadWait& wait) { ids.push_back(wait.thread_id); });
    return ids;
}

}  // namespace

TEST_CASE("the ranges of a wait log hold what was added to each, over the ends of blocks") {
    Blocks memory(100);
    WaitLog log(memory);
    std::uint64_t next = 0;
    std::vector<WaitLog::Range> ranges;
    std::vector<std::vector<std::uint64_t>> expected;
    for (const std::size_t count : {0U, 1U, 31U, 32U, 33U, 0U, 64U, 100U, 1U}) {
        std::vector<std::uint64_t>& ids = expected.emplace_back();
        for (std::size_t n = 0; n < count; ++n) {
            ids.push_back(next);
            REQUIRE(add(log, next++));
        }
        ranges.push_back(log.finish());
    }
    for (std::size_t n = 0; n < ranges.size(); ++n)
        CHECK(waiters(ranges[n]) == expected[n]);
    CHECK(memory.taken() == (next + 31) / 32);
}

TEST_CASE("a wait log begins again in the memory it has, and says when there is none") {
    Blocks memory(2);
    WaitLog log(memory);
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t n = 0; n < 64; ++n)
            REQUIRE(add(log, n));
        CHECK_FALSE(add(log, 64));
        CHECK(waiters(log.finish()).size() == 64);
        log.rewind();
    }
    CHECK(memory.taken() == 2);
}
