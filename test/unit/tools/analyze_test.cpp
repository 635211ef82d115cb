#include "tools/analyze.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <random>
#include <set>

#include "dot_grammar.hpp"
#include "situation.hpp"
#include "strict_json.hpp"
#include "tools/analysis_json.hpp"
#include "tools/analysis_text.hpp"
#include "tools/components.hpp"
#include "tools/report.hpp"
#include "tools/wait_graph_dot.hpp"

using namespace kcdata;
using namespace tools_test;
using Ids = Analyzed::Ids;
using Boost = tools::Diagnosis::Inversion::Boost;

namespace {

/// Threads 1 and 2 of two tasks hold what the other waits for, thread 3 waits behind them.
Situation deadlock2() {
    Situation situation;
    situation.task(5, "x")
        .waits(1, kThreadWaitKernelMutex, 2, 0x1000)
        .waits(3, kThreadWaitKernelMutex, 1, 0x2000)
        .task(6, "y")
        .waits(2, kThreadWaitKernelMutex, 1, 0x2000)
        .running(4);
    return situation;
}

Situation ring(std::uint64_t length, std::uint8_t type) {
    Situation situation;
    for (std::uint64_t id = 1; id <= length; ++id)
        situation.task(static_cast<std::int32_t>(id), "t")
            .waits(id, type, id % length + 1, 0x1000 + id);
    return situation;
}

/// Thread 1 of "client" waits for the reply of thread 2 of "server", which sent a request to a port
/// of the client and waits for its reply.
Situation port_cycle() {
    Situation situation;
    situation.task(6, "server")
        .waits(2, kThreadWaitPortReceive, 0x103, 0x2000, 0, STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY)
        .turnstile(2, STACKSHOT_TURNSTILE_STATUS_BLOCKED_ON_TASK, 5, 2)
        .task(5, "client")
        .waits(1, kThreadWaitPortReceive, 0x203, 0x1000, 0, STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY)
        .turnstile(1, STACKSHOT_TURNSTILE_STATUS_THREAD, 2, 2);
    return situation;
}

std::string text_of(const Analyzed& analyzed) {
    return tools::analysis_text(analyzed.graph, analyzed.diagnosis);
}

bool holds(const std::string& text, const std::string& what) {
    return text.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("two threads that hold what the other waits for are a deadlock") {
    const Analyzed analyzed(deadlock2());
    CHECK(analyzed.deadlocks() == std::vector<Ids>{{1, 2}});
    CHECK(analyzed.diagnosis.deadlocks[0].behind == 1);
    CHECK(analyzed.diagnosis.heads.empty());
    CHECK(text_of(analyzed) ==
          "DEADLOCK: 2 threads wait for each other; 1 more behind them\n"
          "  thread 1 (task \"x\" [pid 5]) waits for mutex 0x1000 held by thread 2 (task \"y\" "
          "[pid 6])\n"
          "  thread 2 (task \"y\" [pid 6]) waits for mutex 0x2000 held by thread 1 (task \"x\" "
          "[pid 5])\n\n");
}

TEST_CASE("without one edge of it there is no deadlock") {
    Situation running;
    running.task(5, "x").waits(1, kThreadWaitKernelMutex, 2, 0x1000).task(6, "y").running(2);
    Situation unrecorded;
    unrecorded.task(5, "x")
        .waits(1, kThreadWaitKernelMutex, 2, 0x1000)
        .waits(2, kThreadWaitKernelMutex, 0, 0x2000);
    Situation spinning;
    spinning.task(5, "x")
        .waits(1, kThreadWaitKernelMutex, 2, 0x1000)
        .waits(2, kThreadWaitKernelMutex, STACKSHOT_WAITOWNER_MTXSPIN, 0x2000);
    Situation locked;
    locked.task(5, "x")
        .waits(1, kThreadWaitKernelMutex, 2, 0x1000)
        .waits(2, kThreadWaitSleepWithInheritor, 0, 0)
        .turnstile(2, STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ, 0, 0);
    for (const Situation* situation : {&running, &unrecorded, &spinning, &locked}) {
        const Analyzed analyzed(*situation);
        CHECK(analyzed.deadlocks().empty());
        REQUIRE(analyzed.diagnosis.heads.size() == 1);
        CHECK(analyzed.graph.threads[analyzed.diagnosis.heads[0].index].id == 2);
        CHECK(text_of(analyzed).starts_with("No deadlock.\n"));
    }
    CHECK(holds(text_of(Analyzed(locked)), "What could not be known\n"));
}

TEST_CASE("a ring of any length and of any kind of lock is one deadlock, in its order") {
    for (const std::uint8_t type :
         {kThreadWaitKernelMutex, kThreadWaitPThreadMutex, kThreadWaitKernelRWLockWrite,
          kThreadWaitSleepWithInheritor, kThreadWaitUserLock})
        for (std::uint64_t length = 1; length <= 40; ++length) {
            Ids expected(length);
            std::iota(expected.begin(), expected.end(), 1);
            CHECK(Analyzed(ring(length, type)).deadlocks() == std::vector<Ids>{expected});
        }
}

TEST_CASE(
    "a thread that waits for what it holds is a deadlock, but not while that is handed over") {
    Situation situation;
    situation.task(5, "x").waits(1, kThreadWaitKernelMutex, 1, 0x1000);
    const Analyzed itself(situation);
    CHECK(itself.deadlocks() == std::vector<Ids>{{1}});
    CHECK(text_of(itself) ==
          "DEADLOCK: a thread waits for itself\n"
          "  thread 1 (task \"x\" [pid 5]) waits for mutex 0x1000 held by itself\n\n");
    situation.turnstile(1, STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ, 0, 0);
    CHECK(Analyzed(situation).deadlocks().empty());
}

TEST_CASE("a queue that is locked for a moment hides no deadlock of lasting owners") {
    Situation situation = deadlock2();
    situation.turnstile(2, STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ, 0, 0);
    CHECK(Analyzed(situation).deadlocks() == std::vector<Ids>{{1, 2}});
}

TEST_CASE("client and server that wait for each other's reply are a deadlock") {
    const Analyzed analyzed(port_cycle());
    CHECK(analyzed.deadlocks() == std::vector<Ids>{{1, 2}});
    CHECK(analyzed.diagnosis.open_cycles.empty());
    CHECK(holds(text_of(analyzed),
                "thread 2 (task \"server\" [pid 6]) waits for a reply on port 0x2000 from task "
                "\"client\" [pid 5]\n"));
}

TEST_CASE("threads that can never receive do not keep a port cycle from being a deadlock") {
    Situation situation = port_cycle();
    situation.thread({.id = 3, .state = SS_TH_RUN | SS_TH_IDLE})
        .thread({.id = 4, .state = SS_TH_RUN | SS_TH_TERMINATE});
    CHECK(Analyzed(situation).deadlocks() == std::vector<Ids>{{1, 2}});
    // Nor does one that waits for the cycle itself.
    situation.waits(5, kThreadWaitKernelMutex, 2, 0x3000);
    CHECK(Analyzed(situation).deadlocks() == std::vector<Ids>{{1, 2, 5}});
}

TEST_CASE("a thread of the client that may yet receive keeps a port cycle open, and is named") {
    const Situation::Thread others[] = {
        {.id = 3, .state = SS_TH_RUN},
        {.id = 3, .wait_event = 0xab00},
        {.id = 3, .state = SS_TH_RUN, .ss_flags = kThreadOnCore, .cpu = 1},
    };
    for (const Situation::Thread& other : others) {
        Situation situation = port_cycle();
        situation.thread(other);
        const Analyzed analyzed(situation);
        CHECK(analyzed.deadlocks().empty());
        REQUIRE(analyzed.diagnosis.open_cycles.size() == 1);
        CHECK(analyzed.ids(analyzed.diagnosis.open_cycles[0].threads) == Ids{1, 2});
        CHECK(analyzed.ids(analyzed.diagnosis.open_cycles[0].may_act) == Ids{3});
        CHECK(holds(text_of(analyzed), "others may act: thread 3\n"));
    }
}

TEST_CASE("a request that waits to be received may be taken by any thread of the server") {
    const auto cycle = [](std::uint8_t hops, const Situation::Thread* other) {
        Situation situation;
        situation.task(5, "client")
            .waits(1, kThreadWaitPortReceive, 0x203, 0x1000, 0,
                   STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY)
            .turnstile(1, STACKSHOT_TURNSTILE_STATUS_THREAD, 2, hops)
            .task(6, "server")
            .waits(2, kThreadWaitKernelMutex, 1, 0x2000);
        if (other != nullptr)
            situation.thread(*other);
        return situation;
    };
    const Situation::Thread other{.id = 3, .state = SS_TH_RUN};
    // On one hop the thread has it already.
    CHECK(Analyzed(cycle(1, &other)).deadlocks() == std::vector<Ids>{{1, 2}});
    CHECK(Analyzed(cycle(2, nullptr)).deadlocks() == std::vector<Ids>{{1, 2}});
    const Analyzed open(cycle(2, &other));
    CHECK(open.deadlocks().empty());
    REQUIRE(open.diagnosis.open_cycles.size() == 1);
    CHECK(open.ids(open.diagnosis.open_cycles[0].may_act) == Ids{3});
}

TEST_CASE("full queues in both directions are a deadlock only if nobody is left to receive") {
    Situation situation;
    situation.task(5, "x").waits(1, kThreadWaitPortSend, 6, 0x1000);
    situation.task(6, "y").waits(2, kThreadWaitPortSend, 5, 0x2000);
    CHECK(Analyzed(situation).deadlocks() == std::vector<Ids>{{1, 2}});
    // A server thread at its port set is free to receive.
    situation.waits(3, kThreadWaitPortSetReceive, 0, 0x3000);
    const Analyzed served(situation);
    CHECK(served.deadlocks().empty());
    CHECK(served.diagnosis.open_cycles.size() == 1);
}

TEST_CASE("a thread that sends to its own task is in a deadlock if there is no other") {
    Situation situation;
    situation.task(5, "x").waits(1, kThreadWaitPortSend, 5, 0x1000);
    CHECK(Analyzed(situation).deadlocks() == std::vector<Ids>{{1}});
    situation.running(2);
    const Analyzed with_receiver(situation);
    CHECK(with_receiver.deadlocks().empty());
    CHECK(with_receiver.diagnosis.open_cycles.empty());
}

TEST_CASE("a parent that waits for a child that waits for the parent's lock is in a deadlock") {
    Situation situation;
    situation.task(5, "parent").waits(1, kThreadWaitOnProcess, 6, 0);
    situation.task(6, "child").waits(2, kThreadWaitKernelMutex, 1, 0x1000);
    CHECK(Analyzed(situation).deadlocks() == std::vector<Ids>{{1, 2}});
}

TEST_CASE("semaphores of each other's task make no deadlock: anybody may signal them") {
    Situation situation;
    situation.task(5, "x").waits(1, kThreadWaitSemaphore, 6, 0x1000);
    situation.task(6, "y").waits(2, kThreadWaitSemaphore, 5, 0x2000);
    const Analyzed analyzed(situation);
    CHECK(analyzed.deadlocks().empty());
    CHECK(analyzed.diagnosis.open_cycles.empty());
    CHECK(analyzed.diagnosis.heads.empty());
}

TEST_CASE("several deadlocks are told apart") {
    Situation situation = deadlock2();
    situation.task(7, "z")
        .waits(20, kThreadWaitKernelMutex, 20, 0x9000)
        .waits(10, kThreadWaitKernelMutex, 11, 0x7000)
        .waits(11, kThreadWaitKernelMutex, 10, 0x8000);
    CHECK(Analyzed(situation).deadlocks() == std::vector<Ids>{{1, 2}, {10, 11}, {20}});
}

TEST_CASE("damage hides no deadlock of threads that are whole, and makes none through a task") {
    // A container is left open: the end is damaged, the tasks in front of it are whole.
    const auto damaged = [](const Situation& situation) {
        Bytes bytes = situation.bytes();
        bytes.resize(bytes.size() - 16);
        return bytes;
    };
    const Analyzed threads(damaged(deadlock2()));
    CHECK_FALSE(threads.graph.complete);
    CHECK(threads.deadlocks() == std::vector<Ids>{{1, 2}});
    const Analyzed tasks(damaged(port_cycle()));
    CHECK(tasks.deadlocks().empty());
    REQUIRE(tasks.diagnosis.open_cycles.size() == 1);
    CHECK(holds(text_of(tasks), "parts of the capture are lost: other threads may act\n"));
}

TEST_CASE("a capture that is cut anywhere is analyzed, and no deadlock is made up") {
    const Bytes whole = deadlock2().bytes();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const Analyzed cut{std::span(whole).first(size)};
        for (const Ids& deadlock : cut.deadlocks())
            if (deadlock != Ids{1, 2})
                FAIL("cut at " << size);
        text_of(cut);
        DotGrammar(tools::wait_graph_dot(cut.graph, cut.diagnosis, "cut"));
    }
}

TEST_CASE("the head of a convoy is named with all that wait for it, and what it is doing") {
    Situation situation;
    situation.task(5, "x").running(100, 2);
    for (std::uint64_t id = 1; id <= 10; ++id)
        situation.waits(id, kThreadWaitKernelMutex, 100, id <= 7 ? 0x1000 : 0x2000);
    // Two behind one of them.
    situation.task(6, "y")
        .waits(11, kThreadWaitKernelRWLockWrite, 3, 0x3000)
        .waits(12, kThreadWaitKernelRWLockRead, 3, 0x3000);
    const Analyzed analyzed(situation);
    REQUIRE(analyzed.diagnosis.heads.size() == 1);
    CHECK(analyzed.diagnosis.heads[0].direct.size() == 10);
    CHECK(analyzed.diagnosis.heads[0].behind == 12);
    CHECK(analyzed.diagnosis.inversions.empty());
    CHECK(text_of(analyzed) ==
          "No deadlock.\n\n"
          "Heads of chains\n"
          "  12 threads behind thread 100 (task \"x\" [pid 5]), which is running on CPU 2\n"
          "      for mutex 0x1000: threads 1, 2, 3, 4, 5, 6, 7\n"
          "      for mutex 0x2000: threads 8, 9, 10\n"
          "      behind those: 2 more\n\n");
}

TEST_CASE("a chain goes on through a task with one thread, and ends at one with several") {
    Situation situation;
    situation.task(6, "server")
        .waits(2, kThreadWaitKernelMutex, 3, 0x2000)
        .task(7, "disk")
        .running(3)
        .task(5, "client")
        .waits(1, kThreadWaitPortSend, 6, 0x1000);
    const Analyzed one(situation);
    REQUIRE(one.diagnosis.heads.size() == 1);
    CHECK(one.graph.threads[one.diagnosis.heads[0].index].id == 3);
    CHECK(one.diagnosis.heads[0].behind == 2);

    situation.task(8, "pool").running(20, 1).running(21, 2).task(9, "user");
    situation.waits(22, kThreadWaitPortSend, 8, 0x3000);
    const Analyzed several(situation);
    REQUIRE(several.diagnosis.heads.size() == 2);
    CHECK(several.diagnosis.heads[1].kind == tools::Diagnosis::Head::Kind::task);
    CHECK(holds(text_of(several),
                "  1 thread behind task \"pool\" [pid 8], any of whose 2 threads may act\n"));
}

TEST_CASE("a head that is not in the capture is named so") {
    Situation situation;
    situation.task(5, "x").waits(1, kThreadWaitKernelMutex, 99, 0x1000);
    const std::string text = text_of(Analyzed(situation));
    CHECK(holds(text, "  1 thread behind thread 99 (not in the capture)\n"));
    CHECK(holds(text, "What could not be known\n  thread 1 (task \"x\" [pid 5]) waits for"));
}

TEST_CASE("a waiter behind an owner of lower base priority is a priority inversion") {
    const struct {
        std::int16_t sched_priority;
        Boost boost;
        std::string words;
    } cases[] = {{10, Boost::none, "not boosted"},
                 {20, Boost::partial, "boosted to 20 only"},
                 {50, Boost::full, "boosted to 50"}};
    for (const auto& each : cases) {
        Situation situation;
        situation.task(5, "x")
            .thread({.id = 1, .name = "high", .base_priority = 50, .sched_priority = 50})
            .wait_info(1, kThreadWaitKernelMutex, 2, 0x1000)
            .thread({.id = 2,
                     .name = "low",
                     .state = SS_TH_RUN,
                     .base_priority = 10,
                     .sched_priority = each.sched_priority})
            .thread({.id = 3,
                     .state = SS_TH_RUN,
                     .base_priority = 30,
                     .sched_priority = 30,
                     .ss_flags = kThreadOnCore,
                     .cpu = 0});
        const Analyzed analyzed(situation);
        REQUIRE(analyzed.diagnosis.inversions.size() == 1);
        const tools::Diagnosis::Inversion& inversion = analyzed.diagnosis.inversions[0];
        CHECK(analyzed.graph.threads[inversion.waiter].id == 1);
        CHECK(analyzed.graph.threads[inversion.owner].id == 2);
        CHECK(inversion.direct);
        CHECK(inversion.runnable);
        CHECK(inversion.boost == each.boost);
        CHECK(holds(text_of(analyzed),
                    "Priority inversions\n  thread 1 \"high\" (task \"x\" [pid 5]), base priority "
                    "50, waits directly behind thread 2 \"low\" (task \"x\" [pid 5]), base "
                    "priority 10, " +
                        each.words + ": it is RUNNABLE, BUT NOT RUNNING\n"));
    }
}

TEST_CASE("an inversion is found along a chain, of the highest waiter, but not in a deadlock") {
    Situation situation;
    situation.task(5, "x");
    const std::int16_t priorities[] = {40, 60, 50, 20};  // of threads 1 to 4, each behind the next
    for (std::uint64_t id = 1; id <= 3; ++id)
        situation.thread({.id = id, .base_priority = priorities[id - 1]})
            .wait_info(id, kThreadWaitKernelMutex, id + 1, 0x1000 + id);
    Situation ended = situation;
    ended.thread({.id = 4,
                  .state = SS_TH_RUN,
                  .base_priority = 20,
                  .sched_priority = 20,
                  .ss_flags = kThreadOnCore,
                  .cpu = 1});
    const Analyzed analyzed(ended);
    REQUIRE(analyzed.diagnosis.inversions.size() == 2);
    const auto& [first, second] =
        std::pair(analyzed.diagnosis.inversions[0], analyzed.diagnosis.inversions[1]);
    CHECK(analyzed.ids({first.waiter, first.owner}) == Ids{2, 3});
    CHECK(first.direct);
    CHECK(analyzed.ids({second.waiter, second.owner}) == Ids{2, 4});
    CHECK_FALSE(second.direct);
    CHECK_FALSE(second.runnable);

    situation.thread({.id = 4, .base_priority = 20})
        .wait_info(4, kThreadWaitKernelMutex, 1, 0x1004);
    CHECK(Analyzed(situation).diagnosis.inversions.empty());
    CHECK(Analyzed(situation).deadlocks().size() == 1);
}

TEST_CASE("random graphs: what is stuck, what is a deadlock and who is behind whom, by hand") {
    // By hand: repeat "can go on" over all threads until nothing changes; close the relation "waits
    // for" by Warshall; count walkers that come by.
    std::mt19937 random(20260101);
    const auto below = [&](std::size_t limit) {
        return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
    };
    std::size_t deadlocks_seen = 0, through_tasks = 0;
    for (int round = 0; round < 1500; ++round) {
        const std::size_t count = 1 + below(12), task_count = 1 + below(4);
        std::vector<std::size_t> task_of(count), id_of(count);
        std::vector<std::vector<std::size_t>> members(task_count);
        std::vector<std::size_t> names(count);
        std::iota(names.begin(), names.end(), 1);
        std::shuffle(names.begin(), names.end(), random);
        for (std::size_t thread = 0; thread < count; ++thread) {
            task_of[thread] = below(task_count);
            members[task_of[thread]].push_back(thread);
            id_of[thread] = 100 + names[thread];
        }
        // Whom each waits for: all of these together only if none of them can go on.
        std::vector<std::vector<std::size_t>> any_of(count);
        std::vector<std::size_t> pushes(count, count);  // the one thread told, for chains
        std::vector<bool> waits(count, false);
        const std::size_t free_share = 1 + below(8);
        Situation situation;
        for (std::size_t task = 0; task < task_count; ++task) {
            situation.task(static_cast<std::int32_t>(task + 1), "t");
            for (const std::size_t thread : members[task]) {
                if (below(10) < free_share / 2) {
                    situation.thread({.id = id_of[thread], .state = SS_TH_RUN});
                } else if (below(3) != 0) {
                    const std::size_t owner = below(count);
                    waits[thread] = true;
                    pushes[thread] = owner;
                    const std::size_t form = below(3);
                    any_of[thread] = {owner};
                    if (form == 2)
                        any_of[thread] = members[task_of[owner]];
                    if (form == 0)
                        situation.waits(id_of[thread], kThreadWaitKernelMutex, id_of[owner], 0x10);
                    else
                        situation.waits(id_of[thread], kThreadWaitPortReceive, 1, 0x10)
                            .turnstile(id_of[thread], STACKSHOT_TURNSTILE_STATUS_THREAD,
                                       id_of[owner], static_cast<std::uint8_t>(form));
                } else {
                    const std::size_t receiver = below(task_count);
                    waits[thread] = true;
                    any_of[thread] = members[receiver];
                    if (members[receiver].size() == 1)
                        pushes[thread] = members[receiver].front();
                    situation.waits(id_of[thread], kThreadWaitPortSend, receiver + 1, 0x20);
                }
            }
        }
        std::vector<bool> can_go(count, false);
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t thread = 0; thread < count; ++thread) {
                bool can = !waits[thread] || any_of[thread].empty();
                for (const std::size_t other : any_of[thread])
                    can = can || can_go[other];
                changed |= can && !can_go[thread];
                can_go[thread] = can_go[thread] || can;
            }
        }
        std::vector<std::vector<bool>> reaches(count, std::vector<bool>(count, false));
        for (std::size_t thread = 0; thread < count; ++thread)
            if (!can_go[thread])
                for (const std::size_t other : any_of[thread])
                    reaches[thread][other] = true;
        for (std::size_t via = 0; via < count; ++via)
            for (std::size_t from = 0; from < count; ++from)
                for (std::size_t to = 0; to < count; ++to)
                    if (reaches[from][via] && reaches[via][to])
                        reaches[from][to] = true;
        std::set<std::pair<std::set<std::uint64_t>, std::size_t>> expected, found;
        for (std::size_t thread = 0; thread < count; ++thread) {
            if (!reaches[thread][thread])
                continue;
            std::set<std::uint64_t> cycle;
            std::size_t behind = 0;
            for (std::size_t other = 0; other < count; ++other) {
                if (reaches[thread][other] && reaches[other][thread])
                    cycle.insert(id_of[other]);
                else if (reaches[other][thread])
                    ++behind;
            }
            expected.emplace(cycle, behind);
        }
        const Analyzed analyzed(situation);
        for (const tools::Diagnosis::Deadlock& deadlock : analyzed.diagnosis.deadlocks) {
            const Ids ids = analyzed.ids(deadlock.threads);
            CHECK(std::is_sorted(ids.begin(), ids.begin() + 1));
            found.emplace(std::set<std::uint64_t>(ids.begin(), ids.end()), deadlock.behind);
            for (const std::size_t thread : deadlock.threads)
                through_tasks +=
                    analyzed.graph.wait_of(thread)->blocker == tools::WaitGraph::Blocker::task;
        }
        if (found != expected)
            FAIL("round " << round << ": " << text_of(analyzed));
        deadlocks_seen += found.size();

        // Heads: walk from every thread to the end of its chain.
        std::map<std::size_t, std::size_t> arrivals;
        for (std::size_t thread = 0; thread < count; ++thread) {
            std::size_t at = thread, steps = 0;
            while (pushes[at] != count && pushes[at] != at && steps <= count) {
                at = pushes[at];
                ++steps;
            }
            if (steps != 0 && steps <= count && !waits[at])
                ++arrivals[id_of[at]];
        }
        std::map<std::size_t, std::size_t> heads;
        for (const tools::Diagnosis::Head& head : analyzed.diagnosis.heads)
            if (head.kind == tools::Diagnosis::Head::Kind::thread)
                heads[analyzed.graph.threads[head.index].id] = head.behind;
        if (heads != arrivals)
            FAIL("round " << round << ": other heads: " << text_of(analyzed));
    }
    // The graphs are such that there is something to find.
    CHECK(deadlocks_seen > 500);
    CHECK(through_tasks > 100);
}

TEST_CASE("random relations fall into the components that their closure has") {
    std::mt19937 random(7);
    for (int round = 0; round < 500; ++round) {
        const std::size_t count = 1 + random() % 14;
        std::vector<std::vector<std::size_t>> next(count);
        std::vector<std::vector<bool>> reaches(count, std::vector<bool>(count, false));
        for (std::size_t edge = random() % (2 * count); edge != 0; --edge) {
            const std::size_t from = random() % count, to = random() % count;
            next[from].push_back(to);
            reaches[from][to] = true;
        }
        for (std::size_t via = 0; via < count; ++via)
            for (std::size_t from = 0; from < count; ++from)
                for (std::size_t to = 0; to < count; ++to)
                    reaches[from][to] =
                        reaches[from][to] || (reaches[from][via] && reaches[via][to]);
        std::set<std::set<std::size_t>> expected, found;
        for (std::size_t node = 0; node < count; ++node) {
            std::set<std::size_t> component;
            for (std::size_t other = 0; other < count; ++other)
                if (reaches[node][other] && reaches[other][node])
                    component.insert(other);
            if (!component.empty())
                expected.insert(component);
        }
        for (const auto& component :
             tools::strongly_connected(count, [&](std::size_t node) { return next[node]; }))
            found.emplace(component.begin(), component.end());
        if (found != expected)
            FAIL("round " << round);
    }
}

TEST_CASE("a chain of fifty thousand threads is walked without a deep stack") {
    constexpr std::uint64_t length = 50'000;
    Situation situation;
    situation.task(5, "x");
    for (std::uint64_t id = 1; id < length; ++id)
        situation.waits(id, kThreadWaitKernelMutex, id + 1, 0x1000);
    Situation closed = situation;
    situation.running(length);
    closed.waits(length, kThreadWaitKernelMutex, 1, 0x1000);
    const Analyzed open(situation);
    REQUIRE(open.diagnosis.heads.size() == 1);
    CHECK(open.diagnosis.heads[0].behind == length - 1);
    const Analyzed ringed(closed);
    REQUIRE(ringed.diagnosis.deadlocks.size() == 1);
    CHECK(ringed.diagnosis.deadlocks[0].threads.size() == length);
}

TEST_CASE("the JSON form has ids as numbers, addresses as text, and all parts of the diagnosis") {
    Situation situation = deadlock2();
    situation.task(7, "quote \" and \\")
        .thread({.id = 30, .name = "high", .base_priority = 50, .sched_priority = 50})
        .wait_info(30, kThreadWaitKernelMutex, 31, UINT64_C(0xfffffe0012345678))
        .turnstile(30, STACKSHOT_TURNSTILE_STATUS_THREAD, 31)
        .thread({.id = 31, .state = SS_TH_RUN})
        .waits(32, kThreadWaitSemaphore, 5, 0x5000)
        .waits(33, kThreadWaitKernelMutex, STACKSHOT_WAITOWNER_MTXSPIN, 0x6000);
    const Analyzed analyzed(situation);
    std::string text;
    tools::StringSink sink(text);
    {
        tools::JsonEmitter json(sink);
        tools::write_analysis(analyzed.graph, analyzed.diagnosis, json);
    }
    const nlohmann::json json = parse_strictly(text);
    CHECK(json["deadlocks"] == nlohmann::json::array({{{"threads", {1, 2}}, {"behind", 1}}}));
    CHECK(json["open_cycles"].empty());
    CHECK(
        json["heads"] ==
        nlohmann::json::array({{{"kind", "thread"}, {"id", 31}, {"direct", {30}}, {"behind", 1}}}));
    CHECK(json["inversions"] == nlohmann::json::array({{{"owner", 31},
                                                        {"waiter", 30},
                                                        {"direct", true},
                                                        {"boost", "none"},
                                                        {"runnable", true}}}));
    CHECK(json["complete"] == true);
    CHECK(json["unknown"].size() == 1);
    std::map<int, nlohmann::json> threads;
    for (const auto& thread : json["threads"])
        threads[thread["id"]] = thread;
    CHECK(threads.size() == 7);  // not thread 4, for which nobody waits
    CHECK(threads[1]["deadlock"] == 0);
    CHECK(threads[1]["pid"] == 5);
    CHECK_FALSE(threads[3].contains("deadlock"));
    CHECK_FALSE(threads[31].contains("wait"));
    const auto& wait = threads[30]["wait"];
    CHECK(wait["type"] == "kThreadWaitKernelMutex");
    CHECK(wait["object"]["address"] == "0xfffffe0012345678");
    CHECK(wait["owner"] == "0x1f");
    CHECK(wait["blocker"] == "thread");
    CHECK(wait["blocker_thread"] == 31);
    CHECK(wait["turnstile"]["flags"] == "0x8");
    CHECK(wait["turnstile"]["hops"] == 1);
    CHECK(threads[32]["wait"]["blocker"] == "creator");
    CHECK(threads[32]["wait"]["blocker_pid"] == 5);
    CHECK(threads[33]["wait"]["unknown"] == "mutex_spin");
    CHECK(threads[33]["wait"]["changing"] == true);
}

TEST_CASE("the DOT form keeps the grammar whatever names there are, and has every edge once") {
    Situation situation = deadlock2();
    situation.task(8, "a\"b\\c\nd\xff{}|<>")
        .thread({.id = 50, .name = "\\N \"; } -> \xc3\xa9 \x1b[2J"})
        .wait_info(50, kThreadWaitPortSend, 6, 0x7000, 1)
        .label({1, "label \" \\l"})
        .waits(51, kThreadWaitPortSend, 6, 0x7000, 1)
        .waits(52, kThreadWaitSemaphore, 8, 0)
        .waits(53, kThreadWaitPortSendInTransit, 0x7000, 0x7100)
        .waits(54, kThreadWaitKernelMutex, 99, 0x7200);
    const Analyzed analyzed(situation);
    const std::string text = tools::wait_graph_dot(analyzed.graph, analyzed.diagnosis, "a \"b\"");
    const DotGrammar dot(text);
    CHECK(dot.name == "a \"b\"");
    // Threads 1-3, 50-54 and 99; tasks 6 and 8; ports 7000, 7100 and three mutexes.
    CHECK(dot.nodes == 9 + 2 + 5);
    // To the object 7, and one for the semaphore without address; from 5 objects on 5.
    CHECK(dot.edges.size() == 7 + 1 + 5);
    CHECK(std::count(dot.labels.begin(), dot.labels.end(),
                     "thread 50 \\N \"; } -> \xc3\xa9 \\x1b[2J") == 1);
    CHECK(std::count(dot.labels.begin(), dot.labels.end(), "port 0x7000 {label \" \\l}") == 1);
    CHECK(holds(text, "\\\\xff"));
    CHECK_FALSE(holds(text, "\xff"));
    // Red are the two threads, and the edges from and to what they hold.
    std::size_t red = 0;
    for (std::size_t at = 0; (at = text.find("color=red", at)) != std::string::npos; ++at)
        ++red;
    CHECK(red == 2 + 4);
}

TEST_CASE("the report names deadlocks on top and says under each thread what it waits for") {
    const Analyzed analyzed(deadlock2());
    const std::string text = tools::report(analyzed.snapshot, nullptr, {});
    const std::size_t deadlock = text.find("DEADLOCK: 2 threads wait for each other");
    REQUIRE(deadlock != std::string::npos);
    CHECK(deadlock < text.find("x  pid 5"));
    CHECK(holds(text,
                "  thread 3  waiting, never ran\n"
                "      priority 31, user unknown, system unknown, runnable unknown\n"
                "      waits for mutex 0x2000 held by thread 1 (task \"x\" [pid 5]), which waits "
                "for mutex 0x1000 held by thread 2 (task \"y\" [pid 6]), which waits for mutex "
                "0x2000 held by thread 1 (task \"x\" [pid 5]), which is in a deadlock\n"));
    Situation none;
    none.task(5, "x").running(1);
    CHECK_FALSE(holds(tools::report(Analyzed(none).snapshot, nullptr, {}), "DEADLOCK"));
}
