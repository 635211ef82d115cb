// What tasks and threads are told to be part of, to have done and to use.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstring>
#include <string>

#include "comparison.hpp"
#include "fake_system.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "taken.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

constexpr std::uint64_t format = STACKSHOT_KCDATA_FORMAT;

io_stats_snapshot io(std::uint64_t first) {
    io_stats_snapshot snapshot;
    std::uint64_t values[sizeof(snapshot) / 8];
    for (auto& value : values)
        value = first++;
    std::memcpy(&snapshot, values, sizeof(snapshot));
    return snapshot;
}

/// The array items with these elements.
std::vector<const Item*> arrays_of(const Taken& taken, std::uint32_t type) {
    std::vector<const Item*> found;
    for (const Item& item : taken.parsed.items)
        if (item.kind == ItemKind::array && item.element_type == type)
            found.push_back(&item);
    return found;
}

std::size_t index_of(const Taken& taken, const Item* item) {
    return static_cast<std::size_t>(item - taken.parsed.items.data());
}

}  // namespace

TEST_CASE("every task tells its coalition, whatever the flags") {
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(20);
    system.tasks[3].facts.active = false;
    Taken taken(system, {Request::all_pids, format});
    for (const ParsedTask& task : taken.tasks) {
        const auto& facts = system.tasks[task.id - 101].facts;
        CHECK(task.coalition == (facts.active ? std::optional(facts.coalition_id) : std::nullopt));
    }
    CHECK(arrays_of(taken, STACKSHOT_KCTYPE_JETSAM_COALITION_SNAPSHOT).empty());
}

TEST_CASE("coalitions stand behind all tasks, in front of what tells of the capture") {
    const bool single = GENERATE(false, true);
    FakeSystem system(4);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(10);
    for (std::uint64_t n = 0; n < 3; ++n)
        system.coalitions.push_back({100 + n, kCoalitionPrivileged + n, 200 + n, 300 + n});
    Taken taken(system, {Request::all_pids, format | STACKSHOT_SAVE_JETSAM_COALITIONS});
    const auto arrays = arrays_of(taken, STACKSHOT_KCTYPE_JETSAM_COALITION_SNAPSHOT);
    REQUIRE(arrays.size() == 1);
    REQUIRE(arrays[0]->element_count == 3);
    REQUIRE(arrays[0]->element_size == 32);
    for (std::size_t n = 0; n < 3; ++n) {
        std::uint64_t words[4];
        std::memcpy(words, arrays[0]->payload.data() + 32 * n, 32);
        CHECK(std::equal(std::begin(words), std::end(words),
                         std::vector<std::uint64_t>{100 + n, 8 + n, 200 + n, 300 + n}.begin()));
    }
    const Item& before = taken.parsed.items[index_of(taken, arrays[0]) - 1];
    CHECK(before.kind == ItemKind::container_end);
    CHECK(before.container_id == system.tasks.back().facts.unique_pid);
    const Item& behind = taken.parsed.items[index_of(taken, arrays[0]) + 1];
    CHECK(std::string(reinterpret_cast<const char*>(behind.payload.data())) ==
          "stackshot_tasks_count");
    CHECK((*described(taken.parsed, "stackshot_out_flags") & STACKSHOT_SAVE_JETSAM_COALITIONS) !=
          0);
}

TEST_CASE("a delta has the coalitions only if a task has started since") {
    constexpr std::uint64_t timestamp = 5'000'000;
    const bool single = GENERATE(false, true);
    const bool newer = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(6);
    for (auto& task : system.tasks)
        task.facts.start_time = timestamp;
    if (newer)
        system.tasks[4].facts.start_time = timestamp + 1;
    system.coalitions.push_back({1, 0, 0, 0});
    Request request{Request::all_pids,
                    format | STACKSHOT_SAVE_JETSAM_COALITIONS | STACKSHOT_COLLECT_DELTA_SNAPSHOT};
    request.delta_timestamp = timestamp;
    Taken taken(system, request);
    CHECK(arrays_of(taken, STACKSHOT_KCTYPE_JETSAM_COALITION_SNAPSHOT).size() == (newer ? 1 : 0));
}

TEST_CASE("thread groups stand in front of the tasks, and each thread names its own") {
    const bool single = GENERATE(false, true);
    FakeSystem system(4);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(10);
    system.thread_groups.push_back({5, kThreadGroupEfficient, "short"});
    system.thread_groups.push_back({6, kThreadGroupManaged, {}});
    std::memcpy(system.thread_groups[1].name, "a name of thirty-two characters!", 32);
    Taken taken(system, {Request::all_pids, format | STACKSHOT_THREAD_GROUP});
    const auto arrays = arrays_of(taken, STACKSHOT_KCTYPE_THREAD_GROUP_SNAPSHOT);
    REQUIRE(arrays.size() == 1);
    REQUIRE(arrays[0]->element_size == 48);
    REQUIRE(arrays[0]->element_count == 2);
    const auto* const bytes = reinterpret_cast<const char*>(arrays[0]->payload.data());
    CHECK(bytes[0] == 5);
    CHECK(std::string(bytes + 8) == "short");
    CHECK(bytes[24] == 1);
    CHECK(bytes[48] == 6);
    CHECK(std::string(bytes + 56, 16) + std::string(bytes + 80, 16) ==
          "a name of thirty-two characters!");
    for (std::size_t index = 0; index < index_of(taken, arrays[0]); ++index)
        CHECK(taken.parsed.items[index].kind != ItemKind::container_begin);
    for (std::size_t t = 0; t < taken.tasks.size(); ++t)
        for (std::size_t n = 0; n < taken.tasks[t].threads.size(); ++n)
            CHECK(taken.tasks[t].threads[n].thread_group ==
                  system.tasks[t].threads[n].facts.thread_group_id);
    Taken without(system, {Request::all_pids, format});
    CHECK(arrays_of(without, STACKSHOT_KCTYPE_THREAD_GROUP_SNAPSHOT).empty());
    CHECK_FALSE(without.tasks[0].threads[0].thread_group);
}

TEST_CASE("a corrupt list of thread groups or coalitions fails the capture, and nothing is lost") {
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    system.add_task("task", 1, 1);
    system.thread_groups.resize(2);
    system.coalitions.resize(2);
    const Request plain{Request::all_pids, format};
    const Request both{Request::all_pids,
                       format | STACKSHOT_THREAD_GROUP | STACKSHOT_SAVE_JETSAM_COALITIONS};
    // Both lists are gone through twice, with a read for each and one for the end.
    CHECK(fail_each_read(system, both) == fail_each_read(system, plain) + 2 * 2 * 3);
}

TEST_CASE("a task tells whom it donates importance to, 20 of them at most") {
    const bool single = GENERATE(false, true);
    FakeSystem system(4);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(6);
    system.add_task("large", 600, 2);
    for (const std::size_t donor : {2U, 4U, 6U}) {
        system.tasks[donor].facts.donates_importance = true;
        for (std::size_t n = 0; n < 5 * donor; ++n)
            system.tasks[donor].donating_pids.push_back(static_cast<std::int32_t>(n + donor));
    }
    Taken taken(system, {Request::all_pids,
                         format | STACKSHOT_SAVE_IMP_DONATION_PIDS | STACKSHOT_THREAD_WAITINFO});
    for (std::size_t t = 0; t < taken.tasks.size(); ++t) {
        auto expected = system.tasks[t].donating_pids;
        expected.resize(std::min<std::size_t>(expected.size(), 20));
        CHECK(taken.tasks[t].donating_pids == expected);
    }
    Taken without(system, {Request::all_pids, format});
    for (const ParsedTask& task : without.tasks)
        CHECK(task.donating_pids.empty());
}

TEST_CASE("tasks and threads that did I/O tell of it, unless it is not wanted") {
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(2);
    auto& task = system.add_task("task", 4, 2);
    system.io[IoStatisticsRef{1}] = io(1000);
    system.io[IoStatisticsRef{2}] = io(2000);
    system.io[IoStatisticsRef{3}] = {};
    task.facts.io_statistics = IoStatisticsRef{1};
    task.threads[1].facts.io_statistics = IoStatisticsRef{2};
    // Nothing done yet, and nothing there.
    task.threads[2].facts.io_statistics = IoStatisticsRef{3};
    task.threads[3].facts.io_statistics = IoStatisticsRef{4};
    Taken taken(system, {Request::all_pids, format});
    CHECK_FALSE(taken.tasks[1].io);
    REQUIRE(taken.tasks[2].io);
    CHECK(bytes_of(*taken.tasks[2].io) == bytes_of(io(1000)));
    REQUIRE(taken.tasks[2].threads[1].io);
    CHECK(bytes_of(*taken.tasks[2].threads[1].io) == bytes_of(io(2000)));
    for (const std::size_t n : {0U, 2U, 3U})
        CHECK_FALSE(taken.tasks[2].threads[n].io);
    for (const std::uint64_t flag : {STACKSHOT_NO_IO_STATS, STACKSHOT_COLLECT_DELTA_SNAPSHOT}) {
        Taken without(system, {Request::all_pids, format | flag});
        CHECK(count_of(without.parsed, STACKSHOT_KCTYPE_IOSTATS) == 0);
    }
}

TEST_CASE("a user thread tells the dispatch queue it works for, if that can be read") {
    FakeSystem system(2);
    system.add_tasks(2);
    system.add_task("task", 4, 2);
    const DispatchQueueRef queue{0x1000}, anonymous{0x2000}, unreadable{0x3000};
    system.dispatch_queues[queue] = {77, "com.example.queue"};
    system.dispatch_queues[anonymous] = {78, ""};
    for (auto& task : system.tasks)
        for (auto& thread : task.threads)
            thread.facts.dispatch_queue = queue;
    system.tasks[2].threads[0].facts.dispatch_queue = anonymous;
    system.tasks[2].threads[1].facts.dispatch_queue = unreadable;
    system.tasks[2].threads[2].facts.dispatch_queue = DispatchQueueRef::none;
    system.tasks[1].facts.active = false;
    Taken taken(system, {Request::all_pids, format | STACKSHOT_GET_DQ});
    for (std::size_t t = 0; t < 3; ++t)
        for (std::size_t n = 0; n < taken.tasks[t].threads.size(); ++n) {
            INFO("task " << t << " thread " << n);
            const ParsedThread& thread = taken.tasks[t].threads[n];
            // Neither the kernel's nor a terminated task's.
            const bool has_queue = t == 2 && n != 1 && n != 2;
            CHECK(((thread.snapshot->ths_ss_flags & kHasDispatchSerial) != 0) == has_queue);
            CHECK(thread.snapshot->ths_dqserialnum == (!has_queue ? 0 : n == 0 ? 78 : 77));
            CHECK(thread.dispatch_queue_label.value_or("") ==
                  (has_queue && n != 0 ? "com.example.queue" : ""));
            CHECK(thread.dispatch_queue_label_size == (has_queue && n != 0 ? 18 : 0));
        }
    Taken without(system, {Request::all_pids, format});
    CHECK(count_of(without.parsed, STACKSHOT_KCTYPE_THREAD_DISPATCH_QUEUE_LABEL) == 0);
    CHECK((without.tasks[2].threads[0].snapshot->ths_ss_flags & kHasDispatchSerial) == 0);
}

TEST_CASE("instructions and cycles are told where the CPUs count them, else not asked for") {
    const bool counts = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.counts_cycles = counts;
    system.add_tasks(4);
    const std::uint64_t flags = format | STACKSHOT_INSTRS_CYCLES;
    Taken taken(system, {Request::all_pids, flags});
    const std::uint64_t seen = counts ? flags : format;
    CHECK(described(taken.parsed, "stackshot_in_flags") == seen);
    CHECK(described(taken.parsed, "stackshot_out_flags") == seen);
    for (std::size_t t = 0; t < 4; ++t) {
        const ParsedTask& task = taken.tasks[t];
        const TaskFacts& facts = system.tasks[t].facts;
        REQUIRE(task.counters.has_value() == counts);
        if (!counts)
            continue;
        CHECK(task.counters->ics_cycles == facts.counters.cycles);
        CHECK(task.counters->ics_instructions == facts.counters.instructions);
        CHECK(task.counters->ics_p_cycles == facts.counters_on_p_cores.cycles);
        CHECK(task.counters->ics_p_instructions == facts.counters_on_p_cores.instructions);
        for (std::size_t n = 0; n < task.threads.size(); ++n) {
            const CpuCounters& expected = system.tasks[t].threads[n].facts.counters;
            REQUIRE(task.threads[n].counters);
            CHECK(task.threads[n].counters->ics_cycles == expected.cycles);
            CHECK(task.threads[n].counters->ics_instructions == expected.instructions);
        }
    }
}

TEST_CASE("how far stacks were ever used is told where it is asked for and known") {
    const bool wanted = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.stack_high_water = wanted;
    auto& task = system.add_task("task", 3, 4);
    system.high_waters[task.threads[0].stack.low] = 4711;
    system.high_waters[task.threads[2].stack.low] = 64;
    task.threads[2].stack_result = KERN_NOT_IN_SET;
    Taken taken(system, {Request::all_pids, format});
    CHECK(taken.tasks[0].threads[0].stack_high_water ==
          (wanted ? std::optional<std::uint32_t>(4711) : std::nullopt));
    CHECK_FALSE(taken.tasks[0].threads[1].stack_high_water);
    CHECK_FALSE(taken.tasks[0].threads[2].stack_high_water);
}

TEST_CASE("with every detail, single-threaded and parallel captures have the same bytes") {
    FakeSystem system(8);
    system.constant.counts_cycles = true;
    system.add_tasks(30);
    system.add_task("large", 900, 2);
    system.thread_groups.resize(7);
    system.coalitions.resize(5);
    system.io[IoStatisticsRef{1}] = io(1);
    system.dispatch_queues[DispatchQueueRef{1}] = {9, "queue"};
    for (auto& task : system.tasks) {
        task.facts.donates_importance = task.threads.size() % 2 == 0;
        task.donating_pids.assign(task.threads.size() % 25, 12);
        for (auto& thread : task.threads) {
            thread.facts.dispatch_queue = DispatchQueueRef{1};
            thread.facts.io_statistics = IoStatisticsRef{1};
        }
    }
    const Request request{Request::all_pids,
                          format | STACKSHOT_GET_DQ | STACKSHOT_SAVE_IMP_DONATION_PIDS |
                              STACKSHOT_THREAD_GROUP | STACKSHOT_SAVE_JETSAM_COALITIONS |
                              STACKSHOT_INSTRS_CYCLES | STACKSHOT_THREAD_WAITINFO,
                          4'000'000};
    system.constant.tunables.single_threaded = true;
    Taken single(system, request);
    system.constant.tunables.single_threaded = false;
    Taken parallel(system, request);
    CHECK(comparable(parallel.data()) == comparable(single.data()));
}
