#include "tools/report.hpp"

#include <catch2/catch_test_macros.hpp>

#include "captures.hpp"
#include "fake_symbolizer.hpp"
#include "kcdata/records.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "tools/kernel_symbols.hpp"

using namespace tools;
using tools_test::FakeSymbolizer;

namespace {

Snapshot small_snapshot() {
    return read_snapshot(tools_test::small_capture());
}

/// The part of `text` from `begin` up to the next blank line.
std::string part(const std::string& text, const std::string& begin) {
    const std::size_t start = text.find(begin);
    if (start == std::string::npos)
        return "no " + begin;
    return text.substr(start, text.find("\n\n", start) + 1 - start);
}

}  // namespace

TEST_CASE("the header tells what was captured and when") {
    FakeSymbolizer symbols;
    const std::string text = report(small_snapshot(), &symbols, {.symbols_from = "a.elf"});
    CHECK(part(text, "Stackshot of") == "Stackshot of test-kernel 1.0\n");
    CHECK(part(text, "  taken") ==
          "  taken       2023-11-14 22:13:20.000042 UTC, absolute time 1000 (1.000 ms)\n"
          "  boot args   workload=test\n"
          "  kernel      at 0xffff000000080000, build-id 00112233445566778899aabbccddeeff, symbols "
          "from a.elf\n"
          "  cpus        those that collected are unknown, 1 DID NOT STOP (3)\n"
          "  memory      statistics not recorded\n"
          "  contents    2 tasks, 8 threads, 12 stack frames\n"
          "  duration    1.500 ms stopped, 2.500 ms in all, 1 try\n");
}

TEST_CASE("the header tells that a capture is from a panic") {
    Snapshot snapshot = small_snapshot();
    CHECK(report(snapshot, nullptr, {}).find("panic") == std::string::npos);
    snapshot.in_flags = snapshot.in_flags.value_or(0) | kcdata::STACKSHOT_FROM_PANIC;
    CHECK(report(snapshot, nullptr, {}).find("(1.000 ms), in a panic\n") != std::string::npos);
}

TEST_CASE("the CPUs are listed with what they run") {
    FakeSymbolizer symbols;
    CHECK(part(report(small_snapshot(), &symbols, {}), "  CPU 0") ==
          "  CPU 0       kernel_task / idle #0  idle\n"
          "  CPU 3       kernel_task / absent   did not stop\n");
}

TEST_CASE("a thread on a CPU is looked up where it was interrupted, its callers at their calls") {
    FakeSymbolizer symbols;
    CHECK(part(report(small_snapshot(), &symbols, {}), "  thread 1 ") ==
          "  thread 1 \"idle #0\"  idle on CPU 0\n"
          "      priority 0, user 0 s, system 1.500 ms, runnable 2.000 s\n"
          "      0  kernel::leaf         kernel/leaf.cpp:3 (inlined)\n"
          "         kernel::spin         kernel/a.cpp:7\n"
          "      1  kernel::thread_main  kernel/thread.cpp:20\n");
}

TEST_CASE("a CPU that did not stop is named, and a stack that was cut is shown as cut") {
    FakeSymbolizer symbols;
    CHECK(part(report(small_snapshot(), &symbols, {}), "  thread 2 ") ==
          "  thread 2 \"absent\"  running on CPU 3, which did not stop: the stack is the last one "
          "known\n"
          "      priority 47 (base 31), user 0 s, system 1.500 ms, runnable 2.000 s\n"
          "      0  kernel::spin  kernel/a.cpp:8\n"
          "         (the stack could not be followed any further)\n");
}

TEST_CASE("a blocked thread is looked up at its call, and says what it waits for and how long") {
    FakeSymbolizer symbols;
    CHECK(
        part(report(small_snapshot(), &symbols, {}), "  thread 10 ") ==
        "  thread 10 \"blocked\"  blocked on 0xffff0000000a0010 (kernel::queue+0x10) for 100.0 us, "
        "last on CPU 1\n"
        "      priority 31, user 0 s, system 1.500 ms, runnable 2.000 s\n"
        "      0  kernel::block        kernel/wait.cpp:99\n"
        "      1  kernel::thread_main  kernel/thread.cpp:20\n");
}

TEST_CASE("a thread that waits for time sleeps") {
    FakeSymbolizer symbols;
    CHECK(
        part(report(small_snapshot(), &symbols, {}), "  thread 11 ")
            .starts_with("  thread 11 \"sleeping\"  sleeping (uninterruptible) for 100.0 us, last "
                         "on CPU 1\n"));
}

TEST_CASE("what an exception interrupted is looked up exactly, and marked") {
    FakeSymbolizer symbols;
    CHECK(part(report(small_snapshot(), &symbols, {}), "  thread 12 ") ==
          "  thread 12 \"preempted\"  runnable for 1.000 us, last on CPU 2\n"
          "      priority 31, user 0 s, system 1.500 ms, runnable 2.000 s\n"
          "      0  kernel::block        kernel/wait.cpp:99\n"
          "      1  exception_entry      vectors.S:5\n"
          "         -- exception; interrupted was --\n"
          "      2  kernel::leaf         kernel/leaf.cpp:3 (inlined)\n"
          "         kernel::spin         kernel/a.cpp:7\n"
          "      3  kernel::thread_main  kernel/thread.cpp:20\n");
}

TEST_CASE("a thread that has not run yet stands at the beginning of its first function") {
    FakeSymbolizer symbols;
    const std::string text = report(small_snapshot(), &symbols, {});
    CHECK(part(text, "  thread 13 ").starts_with("  thread 13 \"new\"  runnable, never ran\n"));
    CHECK(part(text, "  thread 13 ").ends_with("      0  thread_start  kernel/start.S:1\n"));
    CHECK(part(text, "  thread 15 ").starts_with("  thread 15 \"never started\"  not started\n"));
}

TEST_CASE("a stack that several threads of a task have is shown once, with their number") {
    FakeSymbolizer symbols;
    CHECK(part(report(small_snapshot(), &symbols, {}), "  thread 13 ") ==
          "  thread 13 \"new\"  runnable, never ran\n"
          "      priority 31, user 0 s, system 1.500 ms, runnable 2.000 s\n"
          "  thread 15 \"never started\"  not started\n"
          "      priority 31, user 0 s, system 1.500 ms, runnable 2.000 s\n"
          "      2 threads with this stack:\n"
          "      0  thread_start  kernel/start.S:1\n");
}

TEST_CASE("an address without name is told by image and offset, and the images by UUID") {
    Snapshot snapshot = small_snapshot();
    TaskSnapshot& task = snapshot.tasks[1];
    task.images = {{0x100000000, {0x12, 0x34}}};
    task.threads.resize(1);
    task.threads[0].user_stack = {0x100000a00, 0x10};
    const std::string text = report(snapshot, nullptr, {});
    CHECK(
        part(text, "  thread 10 ")
            .ends_with("      1  0x0000000000002004\n"
                       "         -- user --\n"
                       "      0  0x0000000100000a00  12340000-0000-0000-0000-000000000000 + 0xa00\n"
                       "      1  0x0000000000000010\n"));
    CHECK(part(text, "  binary images") ==
          "  binary images\n"
          "      0x0000000100000000  12340000-0000-0000-0000-000000000000  program or library\n");
}

TEST_CASE("CPU times come from the thread's record where there is no record for them") {
    Snapshot snapshot = small_snapshot();
    ThreadSnapshot& thread = snapshot.tasks[1].threads[0];
    thread.user_usec = thread.system_usec = thread.runnable_usec = std::nullopt;
    thread.user_time = 5000;  // ticks of a microsecond
    thread.system_time = 0;
    CHECK(part(report(snapshot, nullptr, {}), "  thread 10 ")
              .find("user 5.000 ms, system 0 s, runnable unknown") != std::string::npos);
}

TEST_CASE("a task's CPU time is that of its threads, also of those that are gone") {
    Snapshot snapshot = small_snapshot();
    snapshot.tasks[0].user_time_in_terminated_threads = 2000;
    const std::string text = report(snapshot, nullptr, {});
    CHECK(text.find("kernel_task  pid 0, 2 threads, user 2.000 ms, system 3.000 ms\n") !=
          std::string::npos);
}

TEST_CASE("threads that a delta tells nothing new of are listed as such") {
    Snapshot snapshot = small_snapshot();
    ThreadSnapshot& thread = snapshot.tasks[0].unchanged_threads.emplace_back();
    thread.id = 77;
    thread.state = kcdata::SS_TH_RUN;
    thread.sched_priority = thread.base_priority = 4;
    CHECK(report(snapshot, nullptr, {.brief = true})
              .find("     77                        4  runnable") != std::string::npos);
    CHECK(report(snapshot, nullptr, {.brief = true}).find("has not run since the capture before") !=
          std::string::npos);
}

TEST_CASE("a thread without name or stack says so") {
    FakeSymbolizer symbols;
    CHECK(part(report(small_snapshot(), &symbols, {}), "  thread 14 ") ==
          "  thread 14  terminating, last on CPU 1\n"
          "      priority 31, user 0 s, system 1.500 ms, runnable 2.000 s\n"
          "      (no kernel stack recorded)\n");
}

TEST_CASE("without symbols a stack is its addresses") {
    const std::string text = report(small_snapshot(), nullptr, {});
    CHECK(part(text, "  thread 10 ") ==
          "  thread 10 \"blocked\"  blocked on 0xffff0000000a0010 for 100.0 us, last on CPU 1\n"
          "      priority 31, user 0 s, system 1.500 ms, runnable 2.000 s\n"
          "      0  0x0000000000003004\n"
          "      1  0x0000000000002004\n");
    CHECK(text.find("no symbols") != std::string::npos);
}

TEST_CASE("the address of each entry is shown when asked for") {
    FakeSymbolizer symbols;
    CHECK(part(report(small_snapshot(), &symbols, {.addresses = true}), "  thread 1 ") ==
          "  thread 1 \"idle #0\"  idle on CPU 0\n"
          "      priority 0, user 0 s, system 1.500 ms, runnable 2.000 s\n"
          "      0  0x0000000000001000  kernel::leaf         kernel/leaf.cpp:3 (inlined)\n"
          "                             kernel::spin         kernel/a.cpp:7\n"
          "      1  0x0000000000002004  kernel::thread_main  kernel/thread.cpp:20\n");
}

TEST_CASE("the brief form has one line a thread") {
    FakeSymbolizer symbols;
    CHECK(
        part(report(small_snapshot(), &symbols, {.brief = true}), "kernel_task  pid") ==
        "kernel_task  pid 0, 2 threads, user 0 s, system 3.000 ms\n"
        "      1  idle #0               0  idle on CPU 0\n"
        "      2  absent         47 (base 31)  running on CPU 3, which did not stop: the stack is "
        "the last one known\n");
}

TEST_CASE("what a capture does not tell is shown as unknown, not as zero") {
    Snapshot snapshot;
    TaskSnapshot& task = snapshot.tasks.emplace_back();
    task.threads.emplace_back().id = 5;
    CHECK(report(snapshot, nullptr, {}) ==
          "Stackshot of an unknown system\n\n"
          "  taken       at an unknown time, absolute time unknown\n"
          "  boot args   unknown\n"
          "  kernel      unknown: the capture tells neither address nor build-id\n"
          "  cpus        those that collected are unknown, absent ones unknown\n"
          "  memory      statistics not recorded\n"
          "  contents    1 task, 1 thread, 0 stack frames; how many there should be is unknown\n"
          "  duration    unknown stopped, unknown in all, tries unknown\n\n"
          "(no name)  pid unknown, 1 thread\n\n"
          "  thread 5  state unknown\n"
          "      priority unknown, user unknown, system unknown, runnable unknown\n"
          "      (no kernel stack recorded)\n\n");
}

TEST_CASE("names cannot steer the terminal") {
    Snapshot snapshot = small_snapshot();
    snapshot.boot_args = "a\x1b[2Jb";
    snapshot.tasks[0].name = "\x1b]0;x\a";
    snapshot.tasks[0].threads[0].name = "\r\nlost";
    for (const bool brief : {false, true}) {
        const std::string text = report(snapshot, nullptr, {.brief = brief});
        CHECK(text.find_first_of("\x1b\a\r") == std::string::npos);
        CHECK(text.find("a\\x1b[2Jb") != std::string::npos);
        CHECK(text.find("\\x0alost") != std::string::npos);
    }
}

TEST_CASE("counts that do not agree with the contents are pointed out") {
    Snapshot snapshot = small_snapshot();
    snapshot.threads_count = 9;
    CHECK(report(snapshot, nullptr, {}).find("THERE SHOULD BE 2 tasks and 9 threads") !=
          std::string::npos);
}

TEST_CASE("an ELF file is the capture's only if the build-id is the same") {
    FakeSymbolizer symbols;
    Snapshot snapshot = small_snapshot();
    // A GNU build-id is longer than the UUID that a capture holds.
    symbols.id.insert(symbols.id.end(), {1, 2, 3, 4});
    CHECK(compare_build_id(snapshot, symbols) == BuildIdMatch::match);
    symbols.id[15] ^= 1;
    CHECK(compare_build_id(snapshot, symbols) == BuildIdMatch::mismatch);
    symbols.id.clear();
    CHECK(compare_build_id(snapshot, symbols) == BuildIdMatch::unknown);
    symbols.id.assign(20, 0);
    snapshot.kernel.reset();
    CHECK(compare_build_id(snapshot, symbols) == BuildIdMatch::unknown);
}

TEST_CASE("a snapshot holds what stands before the damage, and says where that is") {
    const auto whole = tools_test::small_capture();
    CHECK(small_snapshot().problems.empty());
    for (std::size_t size = 0; size < whole.size(); size += 8) {
        const Snapshot cut = read_snapshot(std::span(whole).first(size));
        if (cut.problems.size() != 1)
            FAIL("cut at " << size << ": " << cut.problems.size() << " problems");
        report(cut, nullptr, {});
    }
}
