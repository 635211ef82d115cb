#include "tools/wait_graph.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kcdata/names.hpp"
#include "situation.hpp"
#include "test/unit/reference_samples.hpp"
#include "tools/wait_text.hpp"

using namespace kcdata;
using namespace tools_test;
using tools::WaitGraph;
using Blocker = WaitGraph::Blocker;
using Unknown = WaitGraph::Unknown;

namespace {

std::string words(const Analyzed& analyzed, std::uint64_t id) {
    return tools::wait_text(analyzed.graph, analyzed.wait(id));
}

/// Thread 7 of task "other" [pid 6] runs, thread 1 of task "x" [pid 5] waits.
Situation one_wait(std::uint8_t type, std::uint64_t owner, std::uint64_t context = 0x1000) {
    Situation situation;
    situation.task(6, "other").running(7).task(5, "x").waits(1, type, owner, context);
    return situation;
}

bool contradicts(const Analyzed& analyzed, const std::string& what) {
    return std::any_of(analyzed.graph.contradictions.begin(), analyzed.graph.contradictions.end(),
                       [&](const std::string& each) { return each.find(what) != each.npos; });
}

}  // namespace

TEST_CASE("each wait type says what it waits for, and takes its owner for what XNU makes it") {
    const std::string thread = "thread 7 (task \"other\" [pid 6])", task = "task \"other\" [pid 6]";
    const struct {
        std::uint8_t type;
        std::uint64_t owner;
        Blocker blocker;
        std::string words;
    } cases[] = {
        {kThreadWaitKernelMutex, 7, Blocker::thread, "waits for mutex 0x1000 held by " + thread},
        // The name of the port in the waiter's space.
        {kThreadWaitPortReceive, 7, Blocker::none, "waits for a message on port 0x1000"},
        {kThreadWaitPortSetReceive, 0, Blocker::none, "waits for a message on port set 0x1000"},
        {kThreadWaitPortSend, 6, Blocker::task, "waits to send to port 0x1000 of " + task},
        {kThreadWaitPortSendInTransit, 0x2000, Blocker::port,
         "waits to send to port 0x1000 in transit to port 0x2000"},
        {kThreadWaitSemaphore, 6, Blocker::creator, "waits for semaphore 0x1000 of " + task},
        {kThreadWaitKernelRWLockRead, 7, Blocker::thread,
         "waits to read under rw lock 0x1000 held by " + thread},
        {kThreadWaitKernelRWLockWrite, 7, Blocker::thread,
         "waits to write under rw lock 0x1000 held by " + thread},
        {kThreadWaitKernelRWLockUpgrade, 7, Blocker::thread,
         "waits to upgrade rw lock 0x1000 held by " + thread},
        {kThreadWaitUserLock, 7, Blocker::thread, "waits for user lock 0x1000 held by " + thread},
        {kThreadWaitPThreadMutex, 7, Blocker::thread,
         "waits for pthread mutex 0x1000 held by " + thread},
        {kThreadWaitPThreadRWLockRead, 7, Blocker::thread,
         "waits to read under pthread rw lock 0x1000 held by " + thread},
        {kThreadWaitPThreadRWLockWrite, 7, Blocker::thread,
         "waits to write under pthread rw lock 0x1000 held by " + thread},
        {kThreadWaitPThreadCondVar, 0, Blocker::none, "waits on condition variable 0x1000"},
        {kThreadWaitParkedWorkQueue, 0, Blocker::none, "is parked in its work queue"},
        {kThreadWaitWorkloopSyncWait, 7, Blocker::thread,
         "waits for workloop 0x1000 served by " + thread},
        {kThreadWaitOnProcess, 6, Blocker::task, "waits for the end of " + task},
        {kThreadWaitSleepWithInheritor, 7, Blocker::thread, "sleeps until woken by " + thread},
        {kThreadWaitEventlink, 7, Blocker::thread,
         "waits for eventlink 0x1000 signalled by " + thread},
        {kThreadWaitCompressor, 7, Blocker::thread,
         "waits for compressor segment 0x1000 used by " + thread},
        {kThreadWaitParkedBoundWorkQueue, 0, Blocker::none, "is parked in its work queue"},
        {kThreadWaitPageBusy, 0, Blocker::none, "waits for busy page 0x1000"},
        {kThreadWaitPagerInit, 0, Blocker::none, "waits for the new pager of VM object 0x1000"},
        {kThreadWaitPagerReady, 0, Blocker::none, "waits for the pager of VM object 0x1000"},
        {kThreadWaitPagingActivity, 0, Blocker::none,
         "waits for paging to end in VM object 0x1000"},
        {kThreadWaitMappingInProgress, 0, Blocker::none,
         "waits for mapping to end in VM object 0x1000"},
        {kThreadWaitMemoryBlocked, 0, Blocker::none, "waits for the blocked VM object 0x1000"},
        {kThreadWaitPagingInProgress, 0, Blocker::none,
         "waits for paging to end in VM object 0x1000"},
        {kThreadWaitPageInThrottle, 0, Blocker::none,
         "waits, page-ins throttled, for VM object 0x1000"},
        {kThreadWaitExclaveCore, 7, Blocker::thread,
         "waits for ExclaveCore id 0x1000 held by " + thread},
        {kThreadWaitExclaveKit, 7, Blocker::thread,
         "waits for ExclaveKit id 0x1000 held by " + thread},
    };
    std::vector<std::uint64_t> covered{kThreadWaitNone};
    for (const auto& each : cases) {
        INFO(each.words);
        const Analyzed analyzed(one_wait(each.type, each.owner));
        CHECK(words(analyzed, 1) == each.words);
        CHECK(analyzed.wait(1).blocker == each.blocker);
        CHECK(analyzed.wait(1).unknown == Unknown::no);
        CHECK(analyzed.deadlocks().empty());
        covered.push_back(each.type);
    }
    // No type of the reference is left out.
    for (const ValueName& name : find_value_names("thread_snapshot_wait_flags")->names)
        CHECK(std::count(covered.begin(), covered.end(), name.value) == 1);
}

TEST_CASE("a type that is not known says so and makes no edge") {
    const Analyzed analyzed(one_wait(0x22, 7));
    CHECK(words(analyzed, 1) ==
          "waits for something of unknown type 0x22, owner 0x7, context 0x1000");
    CHECK(analyzed.wait(1).blocker == Blocker::none);
    CHECK(analyzed.wait(1).unknown == Unknown::unknown_type);
}

TEST_CASE("an owner of a special value is told in words and makes no edge") {
    const struct {
        std::uint8_t type;
        std::uint64_t owner;
        Unknown unknown;
        bool changing;
        std::string words;
    } cases[] = {
        {kThreadWaitPortSend, STACKSHOT_WAITOWNER_KERNEL, Unknown::kernel, false,
         "waits to send to port 0x1000 of the kernel"},
        {kThreadWaitPortReceive, STACKSHOT_WAITOWNER_PORT_LOCKED, Unknown::port_locked, true,
         "waits for a message on port 0x1000, which was locked: its receiver is not known"},
        {kThreadWaitPortSend, STACKSHOT_WAITOWNER_PORT_LOCKED, Unknown::port_locked, true,
         "waits to send to port 0x1000, which was locked: its receiver is not known"},
        {kThreadWaitPortSetReceive, STACKSHOT_WAITOWNER_PSET_LOCKED, Unknown::port_set_locked, true,
         "waits for a message on port set 0x1000, which was locked"},
        {kThreadWaitPortReceive, STACKSHOT_WAITOWNER_INTRANSIT, Unknown::in_transit, false,
         "waits for a message on port 0x1000, which is in transit"},
        {kThreadWaitKernelMutex, STACKSHOT_WAITOWNER_MTXSPIN, Unknown::mutex_spin, true,
         "waits for mutex 0x1000 held as a spin lock: by whom is not recorded"},
        {kThreadWaitWorkloopSyncWait, STACKSHOT_WAITOWNER_THREQUESTED, Unknown::thread_requested,
         false, "waits for workloop 0x1000, for which a thread was requested"},
        {kThreadWaitWorkloopSyncWait, STACKSHOT_WAITOWNER_SUSPENDED, Unknown::suspended, false,
         "waits for workloop 0x1000, which is suspended"},
        {kThreadWaitKernelMutex, STACKSHOT_WAITOWNER_SUSPENDED - 1, Unknown::other_special, false,
         "waits for mutex 0x1000, whose owner makes no sense"},
        {kThreadWaitKernelMutex, 0, Unknown::not_recorded, false,
         "waits for mutex 0x1000, whose owner is not recorded"},
        {kThreadWaitKernelRWLockWrite, 0, Unknown::not_recorded, false,
         "waits to write under rw lock 0x1000, whose owner is not recorded"},
        {kThreadWaitSemaphore, 0, Unknown::not_recorded, false,
         "waits for semaphore 0x1000, whose owner is not recorded"},
        {kThreadWaitSleepWithInheritor, 0, Unknown::not_recorded, false,
         "sleeps until woken by a thread that is not recorded"},
        {kThreadWaitPortSend, std::uint64_t{1} << 40, Unknown::other_special, false,
         "waits to send to port 0x1000, whose owner makes no sense"},
        // wait4() takes more than pids: -1, and process groups, which look like special owners.
        {kThreadWaitOnProcess, UINT64_MAX, Unknown::any_child, false,
         "waits for the end of any child"},
        {kThreadWaitOnProcess, STACKSHOT_WAITOWNER_KERNEL, Unknown::process_group, false,
         "waits for the end of a child of a process group"},
        {kThreadWaitOnProcess, 0, Unknown::process_group, false,
         "waits for the end of a child of a process group"},
    };
    for (const auto& each : cases) {
        INFO(each.words);
        const Analyzed analyzed(one_wait(each.type, each.owner));
        CHECK(words(analyzed, 1) == each.words);
        CHECK(analyzed.wait(1).blocker == Blocker::none);
        CHECK(analyzed.wait(1).unknown == each.unknown);
        CHECK(analyzed.wait(1).changing == each.changing);
        // Nothing is there but the two threads and their tasks.
        CHECK(analyzed.graph.threads.size() == 2);
        CHECK(analyzed.graph.tasks.size() == 2);
        // Nor does a turnstile that pushes a thread make an edge of a locked object.
        if (each.changing) {
            const Analyzed pushed(
                one_wait(each.type, each.owner).turnstile(1, STACKSHOT_TURNSTILE_STATUS_THREAD, 7));
            CHECK(pushed.wait(1).blocker == Blocker::none);
        }
    }
}

TEST_CASE("a wait that both wait info and turnstile info tell is one edge") {
    const Analyzed analyzed(
        one_wait(kThreadWaitKernelMutex, 7).turnstile(1, STACKSHOT_TURNSTILE_STATUS_THREAD, 7));
    CHECK(analyzed.graph.waits.size() == 1);
    CHECK_FALSE(analyzed.wait(1).by_turnstile);
    CHECK_FALSE(analyzed.wait(1).changing);
    REQUIRE(analyzed.diagnosis.heads.size() == 1);
    CHECK(analyzed.ids(analyzed.diagnosis.heads[0].direct) == Analyzed::Ids{1});
    CHECK(analyzed.diagnosis.heads[0].behind == 1);
    CHECK(words(analyzed, 1) == "waits for mutex 0x1000 held by thread 7 (task \"other\" [pid 6])");
}

TEST_CASE("a request's reply is waited for from whom the turnstile names at its far end") {
    const auto reply = [](std::uint64_t flags, std::uint64_t context, std::uint8_t hops) {
        Situation situation;
        situation.task(6, "server").running(7).task(5, "client");
        situation.waits(1, kThreadWaitPortReceive, 0x103, 0x1000, 0,
                        STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY);
        situation.turnstile(1, flags, context, hops);
        return situation;
    };
    const Analyzed thread(reply(STACKSHOT_TURNSTILE_STATUS_THREAD, 7, 2));
    CHECK(words(thread, 1) ==
          "waits for a reply on port 0x1000 from thread 7 (task \"server\" [pid 6])");
    CHECK(thread.wait(1).blocker == Blocker::thread);
    CHECK(thread.wait(1).by_turnstile);

    const Analyzed task(reply(
        STACKSHOT_TURNSTILE_STATUS_BLOCKED_ON_TASK | STACKSHOT_TURNSTILE_STATUS_SENDPORT, 6, 2));
    CHECK(words(task, 1) == "waits for a reply on port 0x1000 from task \"server\" [pid 6]");
    CHECK(task.wait(1).blocker == Blocker::task);

    const Analyzed queue(reply(STACKSHOT_TURNSTILE_STATUS_WORKQUEUE, 0xfe00, 3));
    CHECK(words(queue, 1) ==
          "waits for a reply on port 0x1000 that a thread of work queue 0xfe00 will serve");
    CHECK(queue.wait(1).blocker == Blocker::work_queue);
    REQUIRE(queue.diagnosis.heads.size() == 1);
    CHECK(queue.diagnosis.heads[0].kind == tools::Diagnosis::Head::Kind::work_queue);

    for (const std::uint64_t flag :
         {STACKSHOT_TURNSTILE_STATUS_UNKNOWN, STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ,
          STACKSHOT_TURNSTILE_STATUS_HELD_IPLOCK}) {
        const Analyzed unknown(reply(flag, 0, 1));
        CHECK(unknown.wait(1).blocker == Blocker::none);
        CHECK(unknown.wait(1).changing == (flag != STACKSHOT_TURNSTILE_STATUS_UNKNOWN));
        CHECK(unknown.diagnosis.heads.empty());
    }
}

TEST_CASE("a workloop for which a thread was requested is blocked on its work queue") {
    const Analyzed analyzed(one_wait(kThreadWaitWorkloopSyncWait, STACKSHOT_WAITOWNER_THREQUESTED)
                                .turnstile(1, STACKSHOT_TURNSTILE_STATUS_WORKQUEUE, 0xfe00));
    CHECK(words(analyzed, 1) ==
          "waits for workloop 0x1000 that a thread of work queue 0xfe00 will serve");
}

TEST_CASE("a turnstile that pushes another thread than the owner contradicts it on one hop only") {
    const auto pushing = [](std::uint8_t hops) {
        return one_wait(kThreadWaitKernelMutex, 7)
            .running(9, 1)
            .turnstile(1, STACKSHOT_TURNSTILE_STATUS_THREAD, 9, hops);
    };
    const Analyzed handed_over(pushing(1));
    CHECK(handed_over.wait(1).changing);
    CHECK(words(handed_over, 1) ==
          "waits for mutex 0x1000 held by thread 7 (task \"other\" [pid 6]) (its owner was "
          "changing)");
    const Analyzed further(pushing(2));
    CHECK_FALSE(further.wait(1).changing);
    CHECK(words(further, 1) ==
          "waits for mutex 0x1000 held by thread 7 (task \"other\" [pid 6]) (its turnstile pushes "
          "thread 9 (task \"x\" [pid 5]), 2 hops)");
    // The owner is what the lock itself says.
    CHECK(handed_over.graph.threads[handed_over.wait(1).blocked_by].id == 7);
    CHECK(further.graph.threads[further.wait(1).blocked_by].id == 7);
}

TEST_CASE("records of older releases, without label and flags, make the same graph") {
    for (const bool older : {false, true}) {
        Situation situation = one_wait(kThreadWaitKernelMutex, 7);
        situation.waits(2, kThreadWaitPortReceive, 0x103, 0x2000);
        situation.turnstile(2, STACKSHOT_TURNSTILE_STATUS_THREAD, 7, 2);
        if (older)
            situation.version_1();
        const Analyzed analyzed(situation);
        CHECK(analyzed.graph.contradictions.empty());
        CHECK(words(analyzed, 1) ==
              "waits for mutex 0x1000 held by thread 7 (task \"other\" [pid 6])");
        CHECK(words(analyzed, 2) ==
              "waits for a message on port 0x2000 from thread 7 (task \"other\" [pid 6])");
    }
}

TEST_CASE("a port is called by its label, or says why it is not") {
    Situation situation;
    situation.task(5, "x")
        .label({1, "com.example.service"})
        .label({2, "", STACKSHOT_PORTLABEL_READFAILED})
        .label({3, "busy\x1b[2J", STACKSHOT_PORTLABEL_THROTTLED})
        .waits(1, kThreadWaitPortReceive, 0x103, 0x1000, 1)
        .waits(2, kThreadWaitPortReceive, 0x103, 0x2000, 2)
        .waits(3, kThreadWaitPortReceive, 0x103, 0x3000, 3)
        .waits(4, kThreadWaitPortReceive, 0x103, 0x4000, STACKSHOT_PORTLABELID_MISSING)
        .waits(5, kThreadWaitPortReceive, 0x103, 0x5000, 9)
        .waits(6, kThreadWaitPortReceive, 0x103, 0x6000)
        .turnstile(6, STACKSHOT_TURNSTILE_STATUS_THREAD | STACKSHOT_TURNSTILE_STATUS_SENDPORT, 1, 2,
                   1);
    const Analyzed analyzed(situation);
    CHECK(words(analyzed, 1) == "waits for a message on port 0x1000 {com.example.service}");
    CHECK(words(analyzed, 2) == "waits for a message on port 0x2000 {label could not be read}");
    CHECK(words(analyzed, 3) == "waits for a message on port 0x3000 {busy\\x1b[2J, throttled}");
    CHECK(words(analyzed, 4) == "waits for a message on port 0x4000 {label not recorded}");
    CHECK(words(analyzed, 5) == "waits for a message on port 0x5000 {label not recorded}");
    CHECK(words(analyzed, 6) ==
          "waits for a message on port 0x6000 from thread 1 (task \"x\" [pid 5]) through port "
          "{com.example.service}");
}

TEST_CASE("an address of user space is another object in another task") {
    Situation situation;
    situation.task(5, "x")
        .waits(1, kThreadWaitPThreadMutex, 0, 0x1000)
        .waits(2, kThreadWaitPThreadMutex, 0, 0x1000)
        .waits(3, kThreadWaitKernelMutex, 0, 0x1000)
        .task(6, "y")
        .waits(4, kThreadWaitPThreadMutex, 0, 0x1000)
        .waits(5, kThreadWaitKernelMutex, 0, 0x1000);
    const Analyzed analyzed(situation);
    const auto object = [&](std::uint64_t id) { return analyzed.wait(id).object; };
    CHECK(object(1) == object(2));
    CHECK(object(1) != object(3));
    CHECK(object(1) != object(4));
    CHECK(object(3) == object(5));
    CHECK(analyzed.graph.objects.size() == 3);
}

TEST_CASE("who is not in the capture is named so, and nothing more is made of it") {
    Situation situation;
    situation.task(5, "x")
        .waits(1, kThreadWaitKernelMutex, 99, 0x1000)
        .waits(2, kThreadWaitPortSend, 98, 0x2000)
        .waits(3, kThreadWaitKernelMutex, 4, 0x3000)
        .wait_info(4, kThreadWaitKernelMutex, 3, 0x4000);
    const Analyzed analyzed(situation);
    CHECK(words(analyzed, 1) == "waits for mutex 0x1000 held by thread 99 (not in the capture)");
    CHECK(words(analyzed, 2) ==
          "waits to send to port 0x2000 of a task not in the capture [pid 98]");
    CHECK(contradicts(analyzed, "thread 4 has a wait info, but is not in the capture"));
    CHECK(analyzed.deadlocks().empty());
}

TEST_CASE("records that contradict each other are pointed out, and the first counts") {
    Situation situation;
    situation.task(5, "x")
        .running(7)
        .waits(1, kThreadWaitKernelMutex, 7, 0x1000)
        .wait_info(1, kThreadWaitKernelMutex, 1, 0x2000)
        .turnstile(1, STACKSHOT_TURNSTILE_STATUS_THREAD, 7)
        .turnstile(1, STACKSHOT_TURNSTILE_STATUS_THREAD, 1)
        .turnstile(7, STACKSHOT_TURNSTILE_STATUS_THREAD, 1)
        .thread({.id = 8, .state = SS_TH_RUN})
        .wait_info(8, kThreadWaitKernelMutex, 8, 0x3000)
        .thread({.id = 8});
    const Analyzed analyzed(situation);
    CHECK(analyzed.graph.threads[analyzed.wait(1).blocked_by].id == 7);
    CHECK(analyzed.wait(8).unknown == Unknown::not_waiting);
    CHECK(analyzed.deadlocks().empty());
    CHECK(contradicts(analyzed, "thread 1 has two wait infos"));
    CHECK(contradicts(analyzed, "thread 1 has two turnstile infos"));
    CHECK(contradicts(analyzed, "thread 7 has a turnstile info, but no wait info"));
    CHECK(contradicts(analyzed, "thread 8 has a wait info, but does not wait"));
    CHECK(contradicts(analyzed, "thread 8 is in the capture twice"));
}

TEST_CASE("of two tasks with one pid the one that is not over owns what the pid owns") {
    for (const bool live_first : {true, false}) {
        Situation situation;
        for (const bool live : {live_first, !live_first})
            situation.task(6, live ? "live" : "over", live ? 0 : kTerminatedSnapshot);
        situation.task(5, "x").waits(1, kThreadWaitPortSend, 6, 0x1000);
        const Analyzed analyzed(situation);
        CHECK(words(analyzed, 1) == "waits to send to port 0x1000 of task \"live\" [pid 6]");
    }
}

TEST_CASE("threads that a delta stackshot has only in its array wait and own like others") {
    Situation situation;
    situation.task(5, "x")
        .thread({.id = 1, .unchanged = true})
        .wait_info(1, kThreadWaitKernelMutex, 2, 0x1000)
        .waits(2, kThreadWaitKernelMutex, 1, 0x2000);
    const Analyzed analyzed(situation);
    CHECK(analyzed.snapshot.tasks[0].threads.size() == 1);
    CHECK(analyzed.deadlocks() == std::vector<Analyzed::Ids>{{1, 2}});
}

TEST_CASE("what a thread does that waits for nobody known is told by its state") {
    Situation situation;
    situation.task(5, "x")
        .running(1, 3)
        .thread({.id = 2, .state = SS_TH_RUN})
        .thread({.id = 3, .wait_event = 0xab00})
        .thread({.id = 4})
        .thread({.id = 5, .state = SS_TH_RUN | SS_TH_SUSP})
        .thread({.id = 6, .state = SS_TH_RUN | SS_TH_TERMINATE});
    const Analyzed analyzed(situation);
    const std::string expected[] = {"is running on CPU 3",    "is runnable, but not running",
                                    "waits for event 0xab00", "waits, for what is not recorded",
                                    "is suspended",           "is terminating"};
    for (std::size_t thread = 0; thread < std::size(expected); ++thread)
        CHECK(tools::activity_text(analyzed.graph, thread) == expected[thread]);
    CHECK(analyzed.graph.no_wait_infos);
}

TEST_CASE("a chain is told to its end; a long one by its beginning and its end") {
    const auto chain = [](std::uint64_t length) {
        Situation situation;
        situation.task(5, "x");
        for (std::uint64_t id = 1; id < length; ++id)
            situation.waits(id, kThreadWaitKernelMutex, id + 1, 0x1000 + id);
        situation.running(length, 2);
        return situation;
    };
    const Analyzed two(chain(3));
    CHECK(tools::chain_text(two.graph, two.wait(1)) ==
          "waits for mutex 0x1001 held by thread 2 (task \"x\" [pid 5]), which waits for mutex "
          "0x1002 held by thread 3 (task \"x\" [pid 5]), which is running on CPU 2");
    const Analyzed many(chain(9));
    CHECK(tools::chain_text(many.graph, many.wait(1)) ==
          "waits for mutex 0x1001 held by thread 2 (task \"x\" [pid 5]), which waits for mutex "
          "0x1002 held by thread 3 (task \"x\" [pid 5]), which waits for mutex 0x1003 held by "
          "thread 4 (task \"x\" [pid 5]), and so on; the last of 9 is thread 9 (task \"x\" [pid "
          "5]), which is running on CPU 2");
}

TEST_CASE("the waits of the reference samples are those that their expected decode has") {
    std::size_t waits = 0;
    for_each_reference_sample(
        [&](const std::filesystem::path& path, std::span<const std::byte> bytes) {
            std::filesystem::path expected_path = path;
            expected_path.replace_extension(".expected.json");
            std::ifstream file(expected_path);
            const auto expected = nlohmann::json::parse(file);
            if (!expected.contains("kcdata_stackshot"))
                return;
            const Analyzed analyzed(bytes);
            CHECK(analyzed.snapshot.problems.empty());
            CHECK(analyzed.graph.contradictions.empty());
            CHECK(analyzed.deadlocks().empty());
            std::size_t here = 0;
            const nlohmann::json& tasks = expected.at("kcdata_stackshot").at("task_snapshots");
            for (const auto& item : tasks.items())
                for (const nlohmann::json& info :
                     item.value().value("thread_waitinfo", nlohmann::json::array())) {
                    const WaitGraph::Wait& wait = analyzed.wait(info["waiter"]);
                    CHECK(wait.info.owner == info["owner"]);
                    CHECK(wait.info.context == info["context"]);
                    CHECK(wait.info.wait_type == info["wait_type"]);
                    ++here;
                }
            CHECK(analyzed.graph.waits.size() == here);
            waits += here;
        });
    CHECK(waits >= 3);
}

TEST_CASE("Apple's test of a blocked owner: a semaphore in front of a mutex, no deadlock") {
    bool found = false;
    for_each_reference_sample(
        [&](const std::filesystem::path& path, std::span<const std::byte> bytes) {
            if (path.filename() != "stackshot-with-waitinfo.kcdata")
                return;
            found = true;
            const Analyzed analyzed(bytes);
            CHECK(words(analyzed, 14306) ==
                  "waits for a semaphore of task \"stackshot_block_owner_14362384\" [pid 568]");
            CHECK(words(analyzed, 14312) ==
                  "waits for mutex 0xffffff8000af9010 held by thread 14306 (task "
                  "\"stackshot_block_owner_14362384\" [pid 568])");
            REQUIRE(analyzed.diagnosis.heads.size() == 1);
            CHECK(analyzed.graph.threads[analyzed.diagnosis.heads[0].index].id == 14306);
            CHECK(analyzed.diagnosis.heads[0].behind == 1);
            CHECK(analyzed.diagnosis.inversions.empty());
            CHECK(analyzed.diagnosis.open_cycles.empty());
        });
    CHECK(found);
}
