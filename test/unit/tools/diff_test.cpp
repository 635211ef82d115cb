#include "tools/diff.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>

#include "kcdata/records.hpp"
#include "strict_json.hpp"
#include "tools/diff_text.hpp"

using namespace tools;

namespace {

ThreadSnapshot thread(std::uint64_t id, std::uint64_t pc, std::uint64_t used_usec = 0) {
    ThreadSnapshot thread;
    thread.id = id;
    thread.state = kcdata::SS_TH_WAIT;
    thread.kernel_stack = {pc, 0x9000};
    thread.user_usec = 0;
    thread.system_usec = used_usec;
    thread.last_run_time = used_usec;
    return thread;
}

ExportedCapture capture(std::uint64_t time, std::vector<ThreadSnapshot> threads) {
    ExportedCapture capture;
    capture.place = time == 1000 ? "a" : "b";
    capture.snapshot.absolute_time = time;
    capture.snapshot.timebase = Timebase{};
    TaskSnapshot& task = capture.snapshot.tasks.emplace_back();
    task.unique_pid = 70;
    task.pid = 7;
    task.name = "worker";
    task.threads = std::move(threads);
    return capture;
}

const ThreadDiff& of(const Diff& diff, std::uint64_t id) {
    for (const ThreadDiff& each : diff.threads)
        if (each.thread().id == id)
            return each;
    FAIL("no thread " << id);
    return diff.threads.front();
}

struct Both {
    ExportedCapture before = capture(
        1000, {thread(1, 0x1000), thread(2, 0x2000, 5), thread(3, 0x3000), thread(4, 0x4000, 1)});
    ExportedCapture after = capture(4000, {thread(2, 0x2000, 5), thread(3, 0x3004, 40),
                                           thread(4, 0x4000, 9), thread(5, 0x5000, 2)});
    Diff diff() const { return make_diff(before.snapshot, after.snapshot); }
};

}  // namespace

TEST_CASE("a thread is new, gone, moved or stuck by what its stack is in both captures") {
    const Both both;
    const Diff diff = both.diff();
    CHECK(diff.threads.size() == 5);
    CHECK(diff.interval == 3000.0);
    CHECK(of(diff, 1).change == ThreadChange::gone);
    CHECK(of(diff, 2).change == ThreadChange::stuck);
    CHECK(of(diff, 3).change == ThreadChange::moved);
    CHECK(of(diff, 4).change == ThreadChange::stuck);
    CHECK(of(diff, 5).change == ThreadChange::added);
}

TEST_CASE("the time a thread used is the difference of its times, and tells whether it ran") {
    const Both both;
    const Diff diff = both.diff();
    CHECK(of(diff, 2).system_usec == 0u);
    CHECK(of(diff, 2).ran == false);
    CHECK(of(diff, 3).system_usec == 40u);
    CHECK(of(diff, 4).system_usec == 8u);
    CHECK(of(diff, 4).ran == true);
    CHECK(of(diff, 5).system_usec == 2u);
}

TEST_CASE("a thread with the same kernel stack and another user stack has moved") {
    Both both;
    both.before.snapshot.tasks[0].threads[1].user_stack = {0x10};
    both.after.snapshot.tasks[0].threads[0].user_stack = {0x20};
    CHECK(of(both.diff(), 2).change == ThreadChange::moved);
}

TEST_CASE("idle threads are idle, and threads without stack are unknown, not stuck") {
    Both both;
    both.before.snapshot.tasks[0].threads[1].state = kcdata::SS_TH_RUN | kcdata::SS_TH_IDLE;
    both.after.snapshot.tasks[0].threads[0].state = kcdata::SS_TH_RUN | kcdata::SS_TH_IDLE;
    both.before.snapshot.tasks[0].threads[3].kernel_stack.reset();
    both.after.snapshot.tasks[0].threads[2].kernel_stack.reset();
    CHECK(of(both.diff(), 2).change == ThreadChange::idle);
    CHECK(of(both.diff(), 4).change == ThreadChange::unknown);
}

TEST_CASE("times that went back are not known, rather than large") {
    Both both;
    both.before.snapshot.tasks[0].threads[1].system_usec = 6;
    CHECK_FALSE(of(both.diff(), 2).system_usec);
}

TEST_CASE("tasks are new or gone by their unique pid, whatever their pid") {
    Both both;
    both.after.snapshot.tasks[0].unique_pid = 71;
    const Diff diff = both.diff();
    REQUIRE(diff.new_tasks.size() == 1);
    REQUIRE(diff.gone_tasks.size() == 1);
    CHECK(diff.new_tasks[0]->unique_pid == 71);
    CHECK(diff.gone_tasks[0]->unique_pid == 70);
    CHECK(of(diff, 5).change == ThreadChange::added);
}

TEST_CASE("the text of a diff has a section for each change") {
    const Both both;
    CHECK(diff_text(both.diff(), both.before, both.after) ==
          "From a to b: 3.000 us\n"
          "\nnew threads (1)\n"
          "  worker [7]\n"
          "    thread 5  used user 0 s, system 2.000 us\n"
          "      waits, for what is not recorded\n"
          "      at 0x0000000000005000 < 0x0000000000009000\n"
          "\ngone threads (1)\n"
          "  worker [7]\n"
          "    thread 1\n"
          "      was: waits, for what is not recorded\n"
          "           at 0x0000000000001000 < 0x0000000000009000\n"
          "\nmoved: another stack (1)\n"
          "  worker [7]\n"
          "    thread 3  used user 0 s, system 40.00 us\n"
          "      was: waits, for what is not recorded\n"
          "           at 0x0000000000003000 < 0x0000000000009000\n"
          "      is:  waits, for what is not recorded\n"
          "           at 0x0000000000003004 < 0x0000000000009000\n"
          "\nstuck: the same stack in both (2)\n"
          "  worker [7]\n"
          "    thread 2  has not run\n"
          "      waits, for what is not recorded\n"
          "      at 0x0000000000002000 < 0x0000000000009000\n"
          "    thread 4  used user 0 s, system 8.000 us\n"
          "      waits, for what is not recorded\n"
          "      at 0x0000000000004000 < 0x0000000000009000\n");
}

TEST_CASE("the text of a diff says if a capture is damaged, or the second from before the first") {
    Both both;
    both.after.snapshot.problems = {"cut"};
    std::string text = diff_text(both.diff(), both.before, both.after);
    CHECK(text.find("b is damaged") != std::string::npos);
    both.after.snapshot.absolute_time = 500;
    text = diff_text(both.diff(), both.before, both.after);
    CHECK(text.starts_with("From a to b: 500 ns BACK"));
}

TEST_CASE("the JSON of a diff has every thread with its change and both its stacks") {
    Both both;
    both.after.snapshot.tasks[0].threads[1].id = both.before.snapshot.tasks[0].threads[2].id =
        0xfffffffffffffff0;
    std::string text;
    {
        StringSink sink(text);
        JsonEmitter json(sink);
        write_diff(both.diff(), both.before, both.after, json);
    }
    const auto json = tools_test::parse_strictly(text);
    CHECK(json["interval_ns"] == 3000);
    CHECK(json["complete"] == true);
    std::map<std::string, std::string> changes;
    for (const auto& each : json["threads"]) {
        CHECK(each["task"]["pid"] == 7);
        const auto& shown = each.contains("after") ? each["after"] : each["before"];
        changes[shown["id"].dump()] = each["change"];
        if (shown["id"] == "0xfffffffffffffff0") {
            CHECK(each["before"]["stack"][0]["address"] == "0x3000");
            CHECK(each["after"]["stack"][0]["address"] == "0x3004");
            CHECK(each["used_system_usec"] == 40);
            CHECK(each["ran"] == true);
            CHECK(each["after"]["state"] == nlohmann::json{"TH_WAIT"});
        }
    }
    CHECK(changes == std::map<std::string, std::string>{{"1", "gone"},
                                                        {"2", "stuck"},
                                                        {"\"0xfffffffffffffff0\"", "moved"},
                                                        {"4", "stuck"},
                                                        {"5", "new"}});
}
