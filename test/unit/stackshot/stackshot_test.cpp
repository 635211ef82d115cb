#include "stackshot/stackshot.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <chrono>
#include <thread>

#include "fake_system.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "stackshot/attempt.hpp"
#include "stackshot/estimate.hpp"
#include "taken.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

/// The snapshots `facts` should become. What no fact tells is zero.
task_snapshot_v2 expected_snapshot(const TaskFacts& facts) {
    task_snapshot_v2 snapshot{};
    snapshot.ts_unique_pid = facts.unique_pid;
    snapshot.ts_ss_flags = facts.ss_flags | kUser64_p | kTaskSharedRegionNone;
    snapshot.ts_user_time_in_terminated_threads = facts.user_time_in_terminated_threads;
    snapshot.ts_system_time_in_terminated_threads = facts.system_time_in_terminated_threads;
    snapshot.ts_p_start_sec = facts.start_seconds;
    snapshot.ts_task_size = facts.task_size;
    snapshot.ts_max_resident_size = facts.max_resident_size;
    snapshot.ts_suspend_count = facts.suspend_count;
    snapshot.ts_faults = facts.faults;
    snapshot.ts_pid = facts.pid;
    std::strcpy(snapshot.ts_p_comm, facts.name);
    return snapshot;
}
thread_snapshot_v4 expected_snapshot(const ThreadFacts& facts) {
    thread_snapshot_v4 snapshot{};
    snapshot.ths_thread_id = facts.thread_id;
    snapshot.ths_wait_event = facts.blocked.wait_event;
    snapshot.ths_continuation = facts.continuation;
    snapshot.ths_total_syscalls = facts.total_syscalls;
    snapshot.ths_user_time = facts.user_time;
    snapshot.ths_sys_time = facts.system_time;
    snapshot.ths_ss_flags = facts.ss_flags | kKernel64_p;
    snapshot.ths_last_run_time = facts.last_run_time;
    snapshot.ths_last_made_runnable_time = facts.last_made_runnable_time;
    snapshot.ths_state = facts.state;
    snapshot.ths_sched_flags = facts.sched_flags;
    snapshot.ths_base_priority = facts.base_priority;
    snapshot.ths_sched_priority = facts.sched_priority;
    snapshot.ths_eqos = facts.effective_qos;
    snapshot.ths_rqos = facts.requested_qos;
    snapshot.ths_rqos_override = facts.requested_qos_override;
    snapshot.ths_io_tier = facts.io_tier;
    snapshot.ths_thread_t = facts.thread_address;
    snapshot.ths_requested_policy = facts.requested_policy;
    snapshot.ths_effective_policy = facts.effective_policy;
    return snapshot;
}

/// Whole microseconds of ticks of 125/3 ns, 24 to the microsecond.
std::uint64_t microseconds(std::uint64_t ticks) {
    return ticks / 24;
}

void check_against(FakeSystem& system, const std::vector<ParsedTask>& tasks) {
    REQUIRE(tasks.size() == system.tasks.size());
    for (std::size_t t = 0; t < tasks.size(); ++t) {
        const FakeSystem::Task& expected = system.tasks[t];
        INFO("task " << t);
        CHECK(tasks[t].id == expected.facts.unique_pid);
        REQUIRE(tasks[t].snapshot);
        CHECK(bytes_of(*tasks[t].snapshot) == bytes_of(expected_snapshot(expected.facts)));
        REQUIRE(tasks[t].kernel_image.has_value() == expected.facts.is_kernel);
        if (expected.facts.is_kernel) {
            CHECK(tasks[t].kernel_image->imageLoadAddress == system.constant.kernel_load_address);
            CHECK(std::memcmp(tasks[t].kernel_image->imageUUID, system.constant.kernel_uuid, 16) ==
                  0);
        }
        REQUIRE(tasks[t].threads.size() == expected.threads.size());
        for (std::size_t n = 0; n < expected.threads.size(); ++n) {
            const ThreadFacts& facts = expected.threads[n].facts;
            const ParsedThread& thread = tasks[t].threads[n];
            INFO("thread " << n);
            CHECK(thread.id == facts.thread_id);
            REQUIRE(thread.snapshot);
            CHECK(bytes_of(*thread.snapshot) == bytes_of(expected_snapshot(facts)));
            CHECK(thread.name.value_or("") == facts.name);
            CHECK((!thread.name || thread.name_size == 64));
            CHECK(thread.last_processor.value_or(no_cpu) == facts.last_cpu);
            CHECK_FALSE(thread.on_absent_cpu);
            CHECK(thread.frames == expected.threads[n].expected_frames);
            REQUIRE(thread.times);
            CHECK(thread.times->user_usec == microseconds(facts.user_time));
            CHECK(thread.times->system_usec == microseconds(facts.system_time));
            CHECK(thread.times->runnable_usec == microseconds(facts.runnable_time));
        }
    }
}

}  // namespace

TEST_CASE("a capture holds every task and thread with its stack, in task list order") {
    const CpuIndex cpus = GENERATE(1U, 2U, 3U, 8U);
    const bool single = GENERATE(false, true);
    const std::uint32_t clusters = GENERATE(1U, 2U);
    FakeSystem system(cpus, clusters);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(40);
    {
        Taken taken(system, {});
        CHECK(taken.parsed.end == taken.size());
        check_against(system, taken.tasks);
        CHECK(described(taken.parsed, "stackshot_tasks_count") == 40);
        CHECK(described(taken.parsed, "stackshot_threads_count") == system.thread_count());
        CHECK(described(taken.parsed, "stackshot_tries") == 1);
        CHECK(described(taken.parsed, "stackshot_absent_cpus") == 0);
        CHECK(taken.statistics().threads == system.thread_count());
        CHECK(taken.statistics().tasks == 40);
        CHECK(std::popcount(taken.statistics().workers) == static_cast<int>(single ? 1 : cpus));
    }
    CHECK(system.live_allocations() == 0);
    CHECK_FALSE(system.locked());
    CHECK(system.missed_signals() == 0);
}

TEST_CASE("system-wide records come in XNU's order around the tasks") {
    FakeSystem system(2);
    system.add_tasks(3);
    Taken taken(system,
                {Request::all_pids, STACKSHOT_KCDATA_FORMAT | STACKSHOT_GET_GLOBAL_MEM_STATS |
                                        STACKSHOT_ASID | STACKSHOT_INSTRS_CYCLES});
    std::vector<std::string> order;
    std::size_t depth = 0;
    for (const Item& item : taken.parsed.items) {
        if (item.kind == ItemKind::container_end)
            --depth;
        else if (depth == 0 &&
                 (item.type == KCDATA_TYPE_UINT32_DESC || item.type == KCDATA_TYPE_UINT64_DESC))
            order.emplace_back(reinterpret_cast<const char*>(item.payload.data()));
        else if (depth == 0 && item.kind == ItemKind::container_begin)
            order.emplace_back("task");
        else if (depth == 0) {
            char type[16];
            std::snprintf(type, sizeof(type), "0x%x",
                          item.kind == ItemKind::array ? item.element_type : item.type);
            order.emplace_back(type);
        }
        if (item.kind == ItemKind::container_begin)
            ++depth;
    }
    CHECK(order == std::vector<std::string>{"0x59a25807",
                                            "stackshot_in_flags",
                                            "stackshot_in_pid",
                                            "system_state_flags",
                                            "stackshot_size_estimate",
                                            "stackshot_size_estimate_adj",
                                            "0x922",
                                            "0x910",
                                            "0x90f",
                                            "0x947",
                                            "0x90e",
                                            "0x32",
                                            "0x33",
                                            "0x35",
                                            "0x902",
                                            "stackshot_absent_cpus",
                                            "task",
                                            "task",
                                            "task",
                                            "stackshot_tasks_count",
                                            "stackshot_threads_count",
                                            "0x956",
                                            "0x92b",
                                            "0x91a",
                                            "stackshot_tries",
                                            "stackshot_out_flags",
                                            "0xf19158ed"});
    // These CPUs count nothing: XNU clears that flag before it is shown; others only on the way
    // out.
    const std::uint64_t in =
        STACKSHOT_KCDATA_FORMAT | STACKSHOT_GET_GLOBAL_MEM_STATS | STACKSHOT_ASID;
    CHECK(described(taken.parsed, "stackshot_in_flags") == in);
    CHECK(described(taken.parsed, "stackshot_out_flags") == (in & ~STACKSHOT_ASID));
    CHECK(described(taken.parsed, "stackshot_in_pid") == 0xffffffff);
    CHECK(described(taken.parsed, "system_state_flags") == 2);
    const auto memory =
        payload_as<mem_and_io_snapshot>(*find(taken.parsed, STACKSHOT_KCTYPE_GLOBAL_MEM_STATS));
    CHECK(memory.free_pages == 1000);
    CHECK(memory.active_pages == 200);
    CHECK(memory.wired_pages == 30);
    const auto duration =
        payload_as<stackshot_duration_v2>(*find(taken.parsed, STACKSHOT_KCTYPE_STACKSHOT_DURATION));
    CHECK(duration.stackshot_duration > 0);
    CHECK(duration.stackshot_duration_outer > duration.stackshot_duration);
    CHECK(duration.stackshot_duration_prior == 0);
}

TEST_CASE("latency records tell of every CPU, task and thread, in either mode") {
    const bool single = GENERATE(false, true);
    FakeSystem system(4);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(30);
    Taken taken(system, {});
    const std::size_t workers = single ? 1 : 4;
    const auto duration =
        payload_as<stackshot_duration_v2>(*find(taken.parsed, STACKSHOT_KCTYPE_STACKSHOT_DURATION));

    const Item* cpus = nullptr;
    for (const Item& item : taken.parsed.items) {
        if (item.kind == ItemKind::array && item.element_type == STACKSHOT_KCTYPE_LATENCY_INFO_CPU)
            cpus = &item;
    }
    REQUIRE(cpus != nullptr);
    REQUIRE(cpus->element_count == workers);
    std::uint64_t tasks = 0, threads = 0;
    for (std::size_t n = 0; n < workers; ++n) {
        stackshot_latency_cpu cpu;
        std::memcpy(&cpu, cpus->payload.data() + n * sizeof(cpu), sizeof(cpu));
        CHECK(cpu.cpu_number == static_cast<std::int32_t>(n));
        // Stretches of time, not points in time: the fake's clock starts at a million.
        CHECK(cpu.total_latency_mt < 1'000'000);
        CHECK(cpu.total_latency_mt >= cpu.init_latency_mt + cpu.workqueue_latency_mt);
        // The fake counts calls: one lies between the beginning and the end.
        CHECK(cpu.total_cycles == 1000);
        CHECK(cpu.total_instrs == 100);
        tasks += cpu.tasks_processed;
        threads += cpu.threads_processed;
    }
    CHECK(tasks == 30);
    CHECK(threads == system.thread_count());

    const auto collection = payload_as<stackshot_latency_collection_v2>(
        *find(taken.parsed, STACKSHOT_KCTYPE_LATENCY_INFO));
    CHECK(collection.latency_version == 2);
    CHECK(collection.setup_latency_mt > 0);
    CHECK(collection.total_task_iteration_latency_mt > collection.task_queue_building_latency_mt);
    CHECK((collection.task_queue_building_latency_mt == 0) == single);
    CHECK(collection.cpu_wait_latency_mt > 0);
    CHECK(collection.setup_latency_mt + collection.total_task_iteration_latency_mt +
              collection.cpu_wait_latency_mt <=
          duration.stackshot_duration);
    CHECK(collection.main_cpu_number == 0);
    CHECK(collection.calling_cpu_number == 0);
    CHECK(collection.buffer_size == taken.statistics().buffer_size);
    CHECK(collection.buffer_used > 4096);
    CHECK(collection.buffer_used <= collection.buffer_size);
    CHECK(collection.buffer_overhead < collection.buffer_used);
    CHECK(collection.buffer_count == 1);

    const auto& recorded = taken.tasks;
    std::size_t of_tasks = 0, of_threads = 0;
    for (const Item& item : taken.parsed.items) {
        if (item.type == STACKSHOT_KCTYPE_LATENCY_INFO_TASK) {
            const auto latency = payload_as<stackshot_latency_task>(item);
            const ParsedTask& task = recorded.at(of_tasks++);
            CHECK(latency.task_uniqueid == task.id);
            CHECK(latency.setup_latency > 0);
            CHECK(latency.cur_tsnap_latency > 0);
            CHECK(latency.task_thread_data_loop_latency >= task.threads.size());
            CHECK(latency.task_thread_data_loop_latency < duration.stackshot_duration);
        }
        of_threads += item.type == STACKSHOT_KCTYPE_LATENCY_INFO_THREAD;
    }
    CHECK(of_tasks == 30);
    CHECK(of_threads == system.thread_count());
    for (std::size_t t = 0; t < recorded.size(); ++t) {
        for (const ParsedThread& thread : recorded[t].threads) {
            REQUIRE(thread.latency);
            CHECK(thread.latency->thread_id == thread.id);
            CHECK(thread.latency->kernel_stack_latency > 0);
            CHECK(thread.latency->cur_thsnap1_latency > 0);
        }
    }
}

TEST_CASE("the latencies of a task that was cut into parts are those of all its parts") {
    FakeSystem system(4);
    system.add_task("kernel_task", 3, 5);
    system.add_task("large", 900, 5);
    system.add_task("small", 2, 5);
    Taken taken(system, {});
    std::vector<stackshot_latency_task> tasks;
    for (const Item& item : taken.parsed.items) {
        if (item.type == STACKSHOT_KCTYPE_LATENCY_INFO_TASK)
            tasks.push_back(payload_as<stackshot_latency_task>(item));
    }
    REQUIRE(tasks.size() == 3);
    const auto& parsed = taken.tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
        // The fake's clock advances by being read, by other CPUs too.
        std::uint64_t of_threads = 0;
        for (const ParsedThread& thread : parsed[t].threads) {
            const stackshot_latency_thread& l = thread.latency.value();
            of_threads += l.cur_thsnap1_latency + l.thread_name_latency + l.sur_times_latency +
                          l.kernel_stack_latency + l.misc_latency;
        }
        CHECK(tasks[t].task_uniqueid == parsed[t].id);
        CHECK(tasks[t].task_thread_data_loop_latency >= of_threads);
        CHECK(tasks[t].cur_tsnap_latency > 0);
        CHECK(tasks[t].setup_latency > 0);
    }
}

TEST_CASE("a capture that does not want latencies has none, and reads no clock for them") {
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(30);
    Taken with(system, {});
    Taken without(system,
                  {Request::all_pids, STACKSHOT_KCDATA_FORMAT | STACKSHOT_DISABLE_LATENCY_INFO});
    for (const Item& item : without.parsed.items) {
        CHECK(item.element_type != STACKSHOT_KCTYPE_LATENCY_INFO_CPU);
        CHECK(item.type != STACKSHOT_KCTYPE_LATENCY_INFO);
        CHECK(item.type != STACKSHOT_KCTYPE_LATENCY_INFO_TASK);
        CHECK(item.type != STACKSHOT_KCTYPE_LATENCY_INFO_THREAD);
    }
    check_against(system, without.tasks);
    // The fake's clock advances by being read.
    const auto duration = [](Taken& taken) {
        return payload_as<stackshot_duration_v2>(
                   *find(taken.parsed, STACKSHOT_KCTYPE_STACKSHOT_DURATION))
            .stackshot_duration;
    };
    if (single) {
        CHECK(duration(with) > 5 * system.thread_count());
        CHECK(duration(without) < 50);
    }
}

TEST_CASE("a failed capture leaves a trace of its phases and of where it failed") {
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    system.constant.tunables.interrupts_off_limit = 0;
    system.add_tasks(6);
    system.tasks[5].threads[0].facts_result = KERN_FAILURE;
    SubsystemStatistics totals;
    REQUIRE(take_stackshot(system, {}, &totals).error() == KERN_FAILURE);
    CHECK(totals.overdue == 1);

    std::vector<TraceEvent> events;
    std::vector<std::string> errors;
    for (const CpuIndex cpu : {0U, 1U}) {
        for (const TraceEntry& entry : system.traced(cpu)) {
            if (entry.event == TraceEvent::error) {
                // The other CPU's error, if this one came to see it.
                if (entry.word == static_cast<std::uint64_t>(KERN_ABORTED))
                    continue;
                CHECK(entry.word == static_cast<std::uint64_t>(KERN_FAILURE));
                CHECK(entry.line > 0);
                errors.emplace_back(entry.file);
            } else if (cpu == 0) {
                events.push_back(entry.event);
            }
        }
    }
    std::erase(events, TraceEvent::populated);
    CHECK(events == std::vector{TraceEvent::attempt, TraceEvent::preflight, TraceEvent::set_up,
                                TraceEvent::recorded, TraceEvent::barrier,
                                TraceEvent::interrupts_overdue});
    CHECK(std::ranges::count_if(errors, [](const std::string& file) {
              return file.ends_with("stackshot/record.hpp");
          }) == 1);
    CHECK(errors.size() >= 2);

    // And a good one what it took.
    system.tasks[5].threads[0].facts_result = KERN_SUCCESS;
    system.constant.tunables.interrupts_off_limit = UINT64_MAX;
    Taken taken(system, {});
    const auto entries = system.traced(0);
    REQUIRE(entries.size() > 2);
    CHECK(entries.back().event == TraceEvent::assembled);
    CHECK(entries.back().word == taken.size());
    CHECK(entries[entries.size() - 2].event == TraceEvent::resumed);
}

TEST_CASE("a CPU that leaves because of another one's error traces KERN_ABORTED") {
    FakeSystem system(2);
    system.add_task("good", 1, 2);
    system.add_task("bad", 1, 2).threads[0].facts_result = KERN_FAILURE;
    std::atomic<int> at_work{0};
    std::atomic<CpuIndex> aborted{no_cpu};
    const auto wait_until = [](auto condition) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!condition() && std::chrono::steady_clock::now() < deadline)
            std::this_thread::yield();
    };
    system.task_facts_hook = [&](TaskRef task) {
        const CpuIndex self = FakeSystem::this_cpu();
        const auto other_has_ended = [&] {
            const auto entries = system.traced(1 - self);
            return !entries.empty() && entries.back().event == TraceEvent::recorded;
        };
        ++at_work;
        if (task == FakeSystem::task_ref(0)) {
            aborted = self;
            wait_until(other_has_ended);
        } else {
            wait_until([&] { return at_work == 2; });
        }
    };
    REQUIRE(take_stackshot(system, {}).error() == KERN_FAILURE);
    REQUIRE(aborted != no_cpu);
    CHECK(std::ranges::count_if(system.traced(aborted), [](const TraceEntry& entry) {
              return entry.event == TraceEvent::error &&
                     entry.word == static_cast<std::uint64_t>(KERN_ABORTED) &&
                     std::string(entry.file).ends_with("stackshot/capture.cpp");
          }) == 1);
}

TEST_CASE("a capture of one task is single-threaded and holds nothing else") {
    FakeSystem system(4);
    system.add_tasks(12);
    Taken taken(system, {7, STACKSHOT_KCDATA_FORMAT});
    const auto& tasks = taken.tasks;
    REQUIRE(tasks.size() == 1);
    CHECK(tasks[0].snapshot->ts_pid == 7);
    CHECK(tasks[0].threads.size() == system.tasks[7].threads.size());
    CHECK(described(taken.parsed, "stackshot_in_pid") == 7);
    CHECK(taken.statistics().workers == 1);

    Taken parallel(system,
                   {7, STACKSHOT_KCDATA_FORMAT | STACKSHOT_INCLUDE_DRIVER_THREADS_IN_KERNEL});
    CHECK(parallel.tasks.size() == 1);
    CHECK(parallel.statistics().workers == 0xf);

    Taken nobody(system, {4711, STACKSHOT_KCDATA_FORMAT});
    CHECK(nobody.tasks.empty());
    CHECK(described(nobody.parsed, "stackshot_tasks_count") == 0);
}

TEST_CASE("a task that is gone but for its name is not shown") {
    FakeSystem system(2);
    system.add_tasks(4);
    system.tasks[1].facts.active = false;
    system.tasks[1].facts.thread_count = 0;
    system.tasks[1].threads.clear();
    system.tasks[2].facts.active = false;
    Taken taken(system, {});
    const auto& tasks = taken.tasks;
    REQUIRE(tasks.size() == 3);
    CHECK(tasks[1].id == system.tasks[2].facts.unique_pid);
    CHECK(described(taken.parsed, "stackshot_tasks_count") == 3);
}

TEST_CASE("a task in teardown is a transitioning one, with its threads and no other snapshot") {
    FakeSystem system(2);
    system.add_tasks(4);
    system.tasks[2].facts.active = false;
    const TaskFacts& facts = system.tasks[2].facts;
    Taken taken(system, {});
    std::size_t containers = 0;
    for (const Item& item : taken.parsed.items)
        containers += is_container(item, STACKSHOT_KCCONTAINER_TRANSITIONING_TASK);
    CHECK(containers == 1);
    const auto& tasks = taken.tasks;
    REQUIRE(tasks.size() == 4);
    CHECK_FALSE(tasks[2].snapshot);
    REQUIRE(tasks[2].transition);
    transitioning_task_snapshot expected{};
    expected.tts_unique_pid = facts.unique_pid;
    expected.tts_ss_flags =
        facts.ss_flags | kUser64_p | kTaskSharedRegionNone | kTerminatedSnapshot;
    expected.tts_transition_type = 1;  // kTaskIsTerminated
    expected.tts_pid = facts.pid;
    std::strcpy(expected.tts_p_comm, facts.name);
    CHECK(bytes_of(*tasks[2].transition) == bytes_of(expected));
    REQUIRE(tasks[2].threads.size() == system.tasks[2].threads.size());
    CHECK(tasks[2].threads[0].frames == system.tasks[2].threads[0].expected_frames);
    CHECK(described(taken.parsed, "stackshot_tasks_count") == 4);
    for (const std::size_t other : {0U, 1U, 3U}) {
        CHECK(tasks[other].snapshot);
        CHECK_FALSE(tasks[other].transition);
    }
}

TEST_CASE("threads without a kernel stack have no frames, or are left out if the request says so") {
    FakeSystem system(2);
    system.add_task("kernel_task", 4, 3);
    system.tasks[0].threads[1].stack_result = KERN_NOT_IN_SET;
    Taken all(system, {});
    const auto& threads = all.tasks[0].threads;
    REQUIRE(threads.size() == 4);
    CHECK(threads[1].frames.empty());
    CHECK((threads[1].snapshot->ths_ss_flags & kKernel64_p) == 0);
    CHECK((threads[0].snapshot->ths_ss_flags & kKernel64_p) != 0);
    Taken only(system,
               {Request::all_pids, STACKSHOT_KCDATA_FORMAT | STACKSHOT_ACTIVE_KERNEL_THREADS_ONLY});
    CHECK(only.tasks[0].threads.size() == 3);
    CHECK(described(only.parsed, "stackshot_threads_count") == 3);
}

TEST_CASE("a stack that could not be walked to its end is marked, and missing memory apart") {
    FakeSystem system(1);
    system.add_task("kernel_task", 4, 6);
    const auto record = [&](std::size_t thread, std::uint64_t n) {
        return system.tasks[0].threads[thread].stack.registers.fp + 32 * n;
    };
    system.unmap(record(0, 3));                         // memory that is missing
    system.word(record(1, 3)) = record(1, 2);           // a loop
    system.word(record(2, 3)) = 0xffff'0000'0000'0004;  // a wild pointer
    Taken taken(system, {});
    const auto& threads = taken.tasks[0].threads;
    constexpr std::uint64_t marks = kThreadTruncatedBT | kThreadTruncKernBT | kThreadTruncUserBT |
                                    kThreadFaultedBT | kThreadTriedFaultBT;
    const auto marks_of = [&](std::size_t thread) {
        return threads[thread].snapshot->ths_ss_flags & marks;
    };
    // The facts of the fake have no such flags of their own.
    CHECK(threads[0].frames.size() == 4);
    CHECK(marks_of(0) == (kThreadTruncatedBT | kThreadTruncKernBT));
    CHECK(threads[1].frames.size() == 5);
    CHECK(marks_of(1) == kThreadTruncatedBT);
    CHECK(threads[2].frames.size() == 5);
    CHECK(marks_of(2) == kThreadTruncatedBT);
    CHECK(marks_of(3) == 0);
    CHECK(threads[3].frames == system.tasks[0].threads[3].expected_frames);
}

TEST_CASE("a CPU that does not stop is named, waited for by nobody, and its thread marked") {
    const bool preflights = GENERATE(false, true);
    FakeSystem system(4);
    system.add_tasks(20);
    system.absent = 0b0100;
    system.absent_preflight = preflights;
    system.tasks[0].threads[1].facts.last_cpu = 2;
    system.tasks[0].threads[1].facts.ss_flags = kThreadOnCore;
    system.tasks[0].threads[2].facts.last_cpu = 2;
    system.tasks[0].threads[3].facts.last_cpu = 1;
    system.tasks[0].threads[3].facts.ss_flags = kThreadOnCore;
    Taken taken(system, {});
    CHECK(described(taken.parsed, "stackshot_absent_cpus") == 0b0100);
    CHECK(taken.statistics().workers == 0b1011);
    CHECK(taken.statistics().absent == 0b0100);
    const auto& tasks = taken.tasks;
    CHECK(tasks.size() == 20);
    CHECK(tasks[0].threads[1].on_absent_cpu);
    CHECK_FALSE(tasks[0].threads[2].on_absent_cpu);
    CHECK_FALSE(tasks[0].threads[3].on_absent_cpu);
}

TEST_CASE("an attempt that was too small is started again with twice the size") {
    const bool single = GENERATE(false, true);
    FakeSystem system(3);
    system.constant.tunables.single_threaded = single;
    system.constant.tunables.estimate_adj = 0;
    system.add_tasks(2);
    // What the estimate cannot know: stacks far deeper than usual.
    for (auto& thread : system.tasks[0].threads) {
        thread.facts.last_cpu = 0;
        system.make_stack(thread, 900);
    }
    {
        Taken taken(system, {});
        const Statistics& s = taken.statistics();
        CHECK(s.tries > 1);
        CHECK(s.buffer_size == s.estimated_size << (s.tries - 1));
        CHECK(described(taken.parsed, "stackshot_tries") == s.tries);
        CHECK(system.traps() == s.tries);
        const auto duration = payload_as<stackshot_duration_v2>(
            *find(taken.parsed, STACKSHOT_KCTYPE_STACKSHOT_DURATION));
        CHECK(duration.stackshot_duration_prior == s.prior_time);
        CHECK(s.prior_time > 0);
        check_against(system, taken.tasks);
    }
    CHECK(system.live_allocations() == 0);
    CHECK(system.missed_signals() == 0);
}

TEST_CASE("the prior duration of a capture is that of all attempts before the last") {
    FakeSystem system(3);
    system.constant.tunables.estimate_adj = 0;
    system.add_tasks(2);
    for (auto& thread : system.tasks[0].threads)
        system.make_stack(thread, 900);
    SubsystemStatistics totals;
    auto taken = take_stackshot(system, {}, &totals);
    REQUIRE(taken.ok());
    const Statistics& s = taken->statistics;
    REQUIRE(s.tries > 2);
    // What was measured around each trap, but for some looks at the clock.
    const std::uint64_t before = totals.duration - (totals.last_end - totals.last_start);
    CHECK(s.prior_time >= before);
    CHECK(s.prior_time <= before + 5 * s.tries);
    system.free(taken->buffer);
}

TEST_CASE("at the largest buffer a capture that does not fit ends with KERN_RESOURCE_SHORTAGE") {
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    system.constant.tunables.max_tracebuf_size = 40'000;
    system.add_tasks(60);
    const auto result = take_stackshot(system, {});
    CHECK(result.error() == KERN_RESOURCE_SHORTAGE);
    CHECK(system.live_allocations() == 0);
    CHECK_FALSE(system.locked());
}

TEST_CASE("a maximum below the room for stack buffers is an error, not an overflow") {
    const bool single = GENERATE(false, true);
    const std::size_t size = GENERATE(64U, 4096U, 8000U, 8192U, 16'384U);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    system.constant.tunables.max_tracebuf_size = size;
    system.add_tasks(30);
    CHECK(take_stackshot(system, {}).error() == KERN_RESOURCE_SHORTAGE);
    CHECK(system.live_allocations() == 0);
}

TEST_CASE("a queue that more tasks than expected fill up is a new attempt") {
    FakeSystem system(2);
    system.add_tasks(10);
    std::size_t traps = 0;
    // Tasks come between the estimate and the first trap.
    system.trap_hook = [&] {
        if (++traps == 1) {
            for (std::size_t n = 0; n < 40 + max_extra_parts(2); ++n)
                system.add_task("late" + std::to_string(n), 0, 0);
        }
    };
    Taken taken(system, {});
    CHECK(taken.statistics().tries == 2);
    CHECK(taken.tasks.size() == 50 + max_extra_parts(2));
}

TEST_CASE("when the n-th allocation fails nothing is left allocated") {
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(5);
    std::size_t needed = 0;
    for (std::size_t n = 1;; ++n) {
        system.failing_allocation = n;
        auto result = take_stackshot(system, {});
        if (result.ok()) {
            system.free(result->buffer);
            needed = n - 1;
            break;
        }
        CHECK(result.error() == KERN_RESOURCE_SHORTAGE);
        CHECK(system.live_allocations() == 0);
        CHECK_FALSE(system.locked());
        REQUIRE(n < 10);
    }
    CHECK(needed == (single ? 2 : 3));
}

TEST_CASE("the peak of memory a capture tells is the peak there was, over all attempts") {
    const bool single = GENERATE(false, true);
    const bool retried = GENERATE(false, true);
    FakeSystem system(3);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(20);
    if (retried) {
        system.constant.tunables.estimate_adj = 0;
        for (const std::size_t task : {0U, 1U})
            for (auto& thread : system.tasks[task].threads)
                system.make_stack(thread, 900);
    }
    auto taken = take_stackshot(system, {});
    REQUIRE(taken.ok());
    CHECK((taken->statistics.tries > 1) == retried);
    CHECK(taken->statistics.peak_memory == system.peak_bytes());
    CHECK(system.live_bytes() == taken->buffer.size());
    system.free(taken->buffer);
}

TEST_CASE("of a finished buffer only the pages it fills are kept, zeroed behind its end") {
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(20);
    auto taken = take_stackshot(system, {Request::all_pids, STACKSHOT_KCDATA_FORMAT, 1'000'000});
    REQUIRE(taken.ok());
    CHECK(taken->statistics.buffer_size >= 1'000'000);
    CHECK(taken->buffer.size() % 4096 == 0);
    CHECK(taken->buffer.size() - taken->size < 4096);
    for (const std::byte byte : taken->buffer.subspan(taken->size))
        REQUIRE(byte == std::byte{0});
    system.free(taken->buffer);
    CHECK(system.live_bytes() == 0);
}

TEST_CASE("a size hint enlarges the buffer, unless it is above the maximum") {
    FakeSystem system(1);
    system.add_tasks(3);
    Taken plain(system, {});
    Taken hinted(system, {Request::all_pids, STACKSHOT_KCDATA_FORMAT, 1'000'000});
    CHECK(hinted.statistics().buffer_size >= 1'000'000);
    Taken excessive(system, {Request::all_pids, STACKSHOT_KCDATA_FORMAT, 9 << 20});
    CHECK(excessive.statistics().buffer_size == plain.statistics().buffer_size);
}

TEST_CASE("a corrupt list or object ends the capture with KERN_FAILURE, once and for all") {
    const bool single = GENERATE(false, true);
    FakeSystem system(3);
    system.constant.tunables.single_threaded = single;
    system.add_tasks(20);
    SECTION("the task list reports an error") {
        system.next_task_hook = [](TaskRef previous) -> Result<TaskRef> {
            if (previous == FakeSystem::task_ref(4))
                return KERN_FAILURE;
            return TaskRef{static_cast<std::uint64_t>(previous) + 1};
        };
    }
    SECTION("the task list runs in a circle") {
        system.next_task_hook = [](TaskRef previous) -> Result<TaskRef> {
            if (previous == FakeSystem::task_ref(14))
                return FakeSystem::task_ref(3);
            return TaskRef{static_cast<std::uint64_t>(previous) + 1};
        };
    }
    SECTION("a task is its own successor") {
        system.next_task_hook = [](TaskRef) -> Result<TaskRef> { return FakeSystem::task_ref(0); };
    }
    SECTION("a thread list runs in a circle") {
        system.next_thread_hook = [&system](TaskRef task, ThreadRef previous) -> Result<ThreadRef> {
            const auto index = static_cast<std::size_t>(task) - 1;
            if (system.tasks[index].threads.empty())
                return ThreadRef::none;
            const auto next = static_cast<std::uint32_t>(previous);
            return FakeSystem::thread_ref(index, next % system.tasks[index].threads.size());
        };
    }
    SECTION("a thread list leads past a thread that the next one names") {
        system.next_thread_hook = [&system](TaskRef task, ThreadRef previous) -> Result<ThreadRef> {
            const auto index = static_cast<std::size_t>(task) - 1;
            const std::size_t next = static_cast<std::uint32_t>(previous) + (index == 6 ? 1 : 0);
            return next < system.tasks[index].threads.size() ? FakeSystem::thread_ref(index, next)
                                                             : ThreadRef::none;
        };
    }
    SECTION("a task cannot be read") {
        system.tasks[11].facts_result = KERN_FAILURE;
    }
    SECTION("a thread cannot be read") {
        system.tasks[5].threads[0].facts_result = KERN_FAILURE;
    }
    SECTION("a thread's saved registers cannot be read") {
        system.tasks[5].threads[0].stack_result = KERN_FAILURE;
    }
    const auto result = take_stackshot(system, {});
    CHECK(result.error() == KERN_FAILURE);
    CHECK(system.traps() <= 3);
    CHECK(system.live_allocations() == 0);
    CHECK_FALSE(system.locked());
    CHECK(system.missed_signals() == 0);
}

TEST_CASE("a worker does not leave while the queue is still being populated") {
    const CpuIndex cpus = GENERATE(2U, 3U, 4U, 8U);
    FakeSystem system(cpus);
    system.add_tasks(2 * cpus);
    std::atomic<std::size_t> seen_by_others{0};
    system.task_facts_hook = [&](TaskRef) {
        if (FakeSystem::this_cpu() != 0)
            seen_by_others.fetch_add(1);
    };
    // The main CPU hands out a task only when the others have taken all tasks before it and found
    // the queue empty.
    system.next_task_hook = [&](TaskRef previous) -> Result<TaskRef> {
        const auto index = static_cast<std::size_t>(previous);
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (seen_by_others.load() < index || system.waiting_auxiliaries() != cpus - 1) {
            std::this_thread::yield();
            if (std::chrono::steady_clock::now() > deadline)
                return KERN_FAILURE;  // They left.
        }
        return index < system.tasks.size() ? TaskRef{index + 1} : TaskRef::none;
    };
    Taken taken(system, {});
    CHECK(seen_by_others == system.tasks.size());
    check_against(system, taken.tasks);
    CHECK(system.missed_signals() == 0);
}

TEST_CASE("nothing of the memory's former contents gets into a capture") {
    const bool single = GENERATE(false, true);
    std::vector<std::vector<std::byte>> captures;
    for (const std::byte fill : {std::byte{0xaa}, std::byte{0}}) {
        FakeSystem system(1);
        system.constant.tunables.single_threaded = single;
        system.fill = fill;
        // Little memory, so that chunks come from the free list, dirty with earlier records.
        system.constant.tunables.estimate_adj = 0;
        system.add_tasks(50);
        Taken taken(system, {});
        captures.emplace_back(taken.data().begin(), taken.data().end());
    }
    CHECK(captures[0] == captures[1]);
}

TEST_CASE("the estimate follows XNU's maximum and scheme") {
    SystemFacts facts;
    facts.page_size = 4096;
    constexpr std::uint64_t GiB = std::uint64_t{1} << 30;
    facts.memory_size = 128 << 20;
    CHECK(max_tracebuf_size(facts) == 8 << 20);
    facts.memory_size = 16 * GiB - 4096;
    CHECK(max_tracebuf_size(facts) == 16 << 20);
    facts.tunables.max_tracebuf_size = 12345;
    CHECK(max_tracebuf_size(facts) == 12345);
    facts.tunables.max_tracebuf_size = 0;

    const Estimate estimate = estimate_stackshot(facts, 10, 95, {});
    CHECK(estimate.size % 4096 == 0);
    CHECK(estimate.adj == 25);
    // XNU's queue has room for a tenth more tasks than there were.
    CHECK(estimate.queue_capacity >= 11);
    // By the format: 16 bytes of header, payloads in multiples of 16. A container's begin has 4
    // bytes, its end none.
    const auto item = [](std::size_t payload) { return 16 + (payload + 15) / 16 * 16; };
    const std::size_t container = item(4) + item(0);
    const std::size_t latency = item(80);
    // Snapshot, the kernel's image, coalition.
    const std::size_t task = container + item(120) + item(24) + item(8) + latency;
    // Snapshot, name, CPU times, last_processor, and 32 return addresses.
    const std::size_t thread =
        container + item(128) + item(64) + item(24) + item(32 + 4) + item(32 * 8) + latency;
    CHECK(estimate.smallest_chunk == task + 10 * thread);
    const Request without{Request::all_pids,
                          STACKSHOT_KCDATA_FORMAT | STACKSHOT_DISABLE_LATENCY_INFO};
    CHECK(estimate_stackshot(facts, 10, 95, without).smallest_chunk ==
          task + 10 * thread - 11 * latency);
    // All tasks so, and a stack buffer for the one CPU, before the percentage.
    CHECK(estimate.size > (10 * (task + 10 * thread) + 8000) * 125 / 100);
    // Twice the threads, about twice the size; the percentage counts.
    const Estimate twice = estimate_stackshot(facts, 10, 190, {});
    CHECK(twice.size > estimate.size * 3 / 2);
    facts.tunables.estimate_adj = 100;
    CHECK(estimate_stackshot(facts, 10, 95, {}).size > estimate.size * 3 / 2);
    facts.tunables.estimate_adj = 5000;
    CHECK(estimate_stackshot(facts, 10, 95, {}).adj == 100);
    // A capture of one task is sized for one.
    facts.tunables.estimate_adj = 25;
    CHECK(estimate_stackshot(facts, 10, 95, {3, 0}).size < estimate.size / 2);
}
