// The program as a user meets it: exit statuses, and what goes to which stream.

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "captures.hpp"
#include "packings.hpp"
#include "situation.hpp"
#include "temporary_folder.hpp"

using tools_test::Bytes;
using tools_test::read_bytes;
using tools_test::TemporaryFolder;
using tools_test::write_bytes;
using tools_test::write_text;

namespace {

struct Outcome {
    int status = -1;
    std::string out{}, err{};
};

std::string text_of(const std::string& path) {
    const Bytes bytes = read_bytes(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Runs `stackshot ARGUMENTS` by a shell, in `folder`. `prefix` comes before the program.
Outcome run(const TemporaryFolder& folder, const std::string& arguments,
            const std::string& prefix = "") {
    const std::string command = "cd " + (folder / "") + " && exec </dev/null; " + prefix +
                                " '" STACKSHOT_PROGRAM "' " + arguments + " >out.txt 2>err.txt";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(folder / "out.txt"),
            text_of(folder / "err.txt")};
}

bool holds(const std::string& text, const std::string& what) {
    return text.find(what) != std::string::npos;
}

/// Stands for QEMU: a script that sends `line` as the UART would and goes on with `then`.
void write_fake_qemu(const TemporaryFolder& folder, const Bytes& line, const std::string& then) {
    write_bytes(folder / "line", line);
    write_text(folder / "qemu", "#!/bin/sh\ncat '" + (folder / "line") + "'\n" + then + "\n");
    chmod((folder / "qemu").c_str(), 0700);
    write_text(folder / "image", "");
}

constexpr const char* run_fake = "run --qemu ./qemu --image image -o a.kcdata";

}  // namespace

TEST_CASE("help and version are data; every verb has help") {
    const TemporaryFolder folder;
    Outcome outcome = run(folder, "--version");
    CHECK(outcome.status == 0);
    CHECK(outcome.out.starts_with("stackshot "));
    outcome = run(folder, "--help");
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    for (const std::string verb : {"run", "capture", "extract", "decode", "report", "analyze",
                                   "diff", "dump", "encode", "compress", "decompress", "verify"}) {
        CHECK(holds(outcome.out, verb));
        const Outcome help = run(folder, verb + " --help");
        CHECK(help.status == 0);
        CHECK(holds(help.out, "Exit status:"));
        CHECK(help.err.empty());
    }
}

TEST_CASE("wrong usage ends with 2 and says so on standard error") {
    const TemporaryFolder folder;
    for (const char* arguments :
         {"", "frobnicate", "decode", "decode --frobnicate x", "run --el 3", "run --smp 0",
          "run --smp many", "report a --color sometimes", "analyze a --format svg",
          "capture tcp:nowhere", "compress a --level 10", "decode a --max-size -1",
          "dump a --limit -1", "dump a --offset -1", "compress a --level 6 --xnu", "decompress"}) {
        INFO(arguments);
        const Outcome outcome = run(folder, arguments);
        CHECK(outcome.status == 2);
        CHECK(outcome.out.empty());
        CHECK_FALSE(outcome.err.empty());
    }
}

TEST_CASE("what is not there ends with 1, a target that is not there with 4") {
    const TemporaryFolder folder;
    CHECK(run(folder, "decode nothing").status == 1);
    CHECK(run(folder, "report nothing").status == 1);
    CHECK(run(folder, "analyze nothing").status == 1);
    CHECK(run(folder, "extract nothing").status == 1);
    CHECK(run(folder, "compress nothing").status == 1);
    CHECK(run(folder, "decompress nothing").status == 1);
    CHECK(run(folder, "run --image nothing").status == 1);
    CHECK(run(folder, "capture ./nothing").status == 4);
    write_text(folder / "image", "");
    const Outcome outcome = run(folder, "run --image image --qemu ./nothing");
    CHECK(outcome.status == 4);
    CHECK(holds(outcome.err, "./nothing"));
}

TEST_CASE("decode prints JSON on standard output, from a file and from standard input") {
    const TemporaryFolder folder;
    write_bytes(folder / "a.kcdata", tools_test::small_capture());
    const Outcome file = run(folder, "decode a.kcdata");
    CHECK(file.status == 0);
    CHECK(file.err.empty());
    const auto json = nlohmann::json::parse(file.out);
    CHECK(json["kcdata_stackshot"]["task_snapshots"]["7"]["task_snapshot"]["ts_pid"] == 42);
    const Outcome input = run(folder, "decode --compact -", "cat a.kcdata |");
    CHECK(input.status == 0);
    CHECK(nlohmann::json::parse(input.out) == json);
}

TEST_CASE("analyze ends with 10 on a deadlock, damaged or not, else with 3 or 0") {
    const TemporaryFolder folder;
    tools_test::Situation situation;
    situation.task(5, "x").waits(1, kcdata::kThreadWaitKernelMutex, 2, 0x1000);
    situation.task(6, "y");
    tools_test::Situation free = situation;
    const Bytes none = free.running(2).bytes();
    const Bytes deadlock = situation.waits(2, kcdata::kThreadWaitKernelMutex, 1, 0x2000).bytes();
    const auto status = [&](const Bytes& bytes, const std::string& options = "") {
        write_bytes(folder / "a.kcdata", bytes);
        return run(folder, "analyze a.kcdata" + options).status;
    };
    const auto cut = [](Bytes bytes) {
        bytes.resize(bytes.size() - 16);
        return bytes;
    };
    const auto both = [](Bytes first, const Bytes& second) {
        first.insert(first.end(), second.begin(), second.end());
        return first;
    };
    for (const std::string format : {"", " --format text", " --format json", " --format dot"}) {
        CHECK(status(none, format) == 0);
        CHECK(status(deadlock, format) == 10);
    }
    CHECK(status(cut(none)) == 3);
    CHECK(status(cut(deadlock)) == 10);
    CHECK(status(both(none, deadlock)) == 10);
    CHECK(status(both(none, cut(none))) == 3);
    CHECK(holds(run(folder, "analyze a.kcdata").err, "offset"));
    CHECK(status(both(deadlock, none), " --format json") == 10);
    // Two documents, one behind the other.
    const std::string out = run(folder, "analyze a.kcdata --format json").out;
    const std::size_t second = out.find("\n{");
    REQUIRE(second != std::string::npos);
    CHECK(nlohmann::json::parse(out.substr(0, second))["deadlocks"].size() == 1);
    CHECK(nlohmann::json::parse(out.substr(second))["deadlocks"].empty());
}

TEST_CASE("dump shows a buffer, and its text is made into the same bytes") {
    const TemporaryFolder folder;
    const Bytes capture = tools_test::small_capture();
    write_bytes(folder / "a.kcdata", capture);
    const Outcome text = run(folder, "dump a.kcdata");
    CHECK(text.status == 0);
    CHECK(text.err.empty());
    CHECK(text.out.starts_with("00000000  KCDATA_BUFFER_BEGIN_STACKSHOT (0x59a25807)"));
    const Outcome one =
        run(folder, "dump a.kcdata --type STACKSHOT_KCTYPE_TASK_SNAPSHOT --limit 1");
    CHECK(holds(one.out, "ts_p_comm"));
    CHECK_FALSE(holds(one.out, "KCDATA_BUFFER_BEGIN_STACKSHOT"));
    CHECK(run(folder, "dump a.kcdata --type nothing").status == 2);
    CHECK(run(folder, "dump a.kcdata --offset 100000").out.empty());

    const Outcome made =
        run(folder, "dump --json a.kcdata | '" STACKSHOT_PROGRAM "' encode - -o b");
    CHECK(made.status == 0);
    CHECK((read_bytes(folder / "b") == capture));
    write_text(folder / "wrong.json", "[{\"type\": 1},\n {\"type\": \"nothing\"}]");
    const Outcome wrong = run(folder, "encode wrong.json -o c");
    CHECK(wrong.status == 1);
    CHECK(holds(wrong.err, "wrong.json:2:11: [1].type: no type is called \"nothing\""));
    CHECK(read_bytes(folder / "c").empty());
    CHECK(run(folder, "encode nothing.json").status == 1);

    Bytes damaged = capture;
    damaged.resize(damaged.size() - 8);
    write_bytes(folder / "a.kcdata", damaged);
    const Outcome shown = run(folder, "dump a.kcdata");
    CHECK(shown.status == 3);
    CHECK(holds(shown.out, "!! the data ends inside an item's header"));
    CHECK(holds(shown.err, "a.kcdata: damaged"));
}

TEST_CASE("verify ends with 0 if every rule is kept, and with 1 and a line for each that is not") {
    const TemporaryFolder folder;
    Bytes capture = read_bytes(KCDATA_DIR "/stackshot.kcdata");
    write_bytes(folder / "a.kcdata", capture);
    const Outcome kept = run(folder, "verify a.kcdata");
    CHECK(kept.status == 0);
    CHECK(kept.out.empty());
    CHECK(holds(kept.err, "generation 3"));
    CHECK(run(folder, "verify -q a.kcdata").err.empty());
    // The flags of the second item.
    capture[24] ^= std::byte{0x80};
    write_bytes(folder / "a.kcdata", capture);
    CHECK(holds(run(folder, "verify a.kcdata").err, "generation 2"));
    const Outcome broken = run(folder, "verify --generation 3 a.kcdata");
    CHECK(broken.status == 1);
    CHECK(holds(broken.out, "a.kcdata: 0x00000010: item 1: flags-not-marked: "));
    CHECK(holds(broken.err, "1 violations"));
    CHECK(run(folder, "verify --generation 4 a.kcdata").status == 2);
    CHECK(run(folder, "verify nothing").status == 1);
}

TEST_CASE("a damaged capture is decoded and shown as far as it goes, and ends with 3") {
    const TemporaryFolder folder;
    Bytes capture = tools_test::small_capture();
    capture.resize(capture.size() / 2);
    write_bytes(folder / "a.kcdata", capture);
    const Outcome decoded = run(folder, "decode a.kcdata");
    CHECK(decoded.status == 3);
    CHECK(nlohmann::json::parse(decoded.out)["kcdata_stackshot"].contains("task_snapshots"));
    CHECK(holds(decoded.err, "a.kcdata: offset 0x"));
    const Outcome shown = run(folder, "report --elf '" SYMBOL_TARGET "' a.kcdata");
    CHECK(shown.status == 3);
    CHECK(holds(shown.out, "kernel_task"));
    CHECK(holds(shown.err, "a.kcdata: offset 0x"));
}

TEST_CASE("decode --strict prints nothing of a damaged capture, and all of a sound one") {
    const TemporaryFolder folder;
    Bytes capture = tools_test::small_capture();
    write_bytes(folder / "sound", capture);
    const Outcome plain = run(folder, "decode sound");
    const Outcome sound = run(folder, "decode --strict sound");
    CHECK(sound.status == 0);
    CHECK(sound.out == plain.out);
    capture.resize(capture.size() - 1);
    write_bytes(folder / "damaged", capture);
    const Outcome damaged = run(folder, "decode --strict damaged");
    CHECK(damaged.status == 1);
    CHECK(damaged.out.empty());
    CHECK(holds(damaged.err, "damaged: offset 0x"));
}

TEST_CASE("the buffers of a file are documents or lines one behind the other") {
    const TemporaryFolder folder;
    Bytes capture = tools_test::small_capture();
    const Bytes packed = tools_test::compressed(capture);
    const Outcome one = [&] {
        write_bytes(folder / "a", capture);
        return run(folder, "decode --compact a");
    }();
    capture.insert(capture.end(), packed.begin(), packed.end());
    write_bytes(folder / "a", capture);
    CHECK(run(folder, "decode --compact a").out == one.out + one.out);
    CHECK(run(folder, "decode --compact -", "cat a |").out == one.out + one.out);
    const Outcome lines = run(folder, "decode --lines a");
    CHECK(lines.status == 0);
    // A line for each buffer and each of its two tasks.
    CHECK(std::count(lines.out.begin(), lines.out.end(), '\n') == 6);
    const Outcome shown = run(folder, "report --brief a");
    CHECK(holds(shown.out.substr(shown.out.find("kernel_task") + 1), "kernel_task"));
    CHECK(run(folder, "decode --max-size 1K a").status == 1);
    CHECK(holds(run(folder, "decode --max-size 1K a").err, "--max-size"));
}

TEST_CASE("report writes every format, of all captures of a file; of ips only one") {
    const TemporaryFolder folder;
    const Bytes one = tools_test::small_capture();
    Bytes two = one;
    two.insert(two.end(), one.begin(), one.end());
    write_bytes(folder / "two", two);
    const Outcome folded = run(folder, "report two --format folded");
    CHECK(folded.status == 0);
    CHECK(holds(folded.out, "worker [42];thread 13 \"new\";0x0000000000002000 2\n"));
    const auto profile = nlohmann::json::parse(run(folder, "report two --format speedscope").out);
    CHECK(profile["profiles"].size() == 1 + 8);
    CHECK(profile["profiles"][0]["samples"].size() == 2 * 8);
    CHECK(nlohmann::json::parse(run(folder, "report two --format perfetto").out)
              .contains("traceEvents"));
    const Outcome refused = run(folder, "report two --format ips");
    CHECK(refused.status == 2);
    CHECK(refused.out.empty());
    CHECK(holds(refused.err, "two holds 2 captures"));
    const Outcome second = run(folder, "report two --format ips --buffer 2");
    CHECK(second.status == 0);
    CHECK(second.out.starts_with(R"({"bug_type":288,)"));
    CHECK(run(folder, "report two --buffer 3").status == 2);
}

TEST_CASE("a damaged capture is exported as far as it goes, and ends with 3") {
    const TemporaryFolder folder;
    Bytes bytes = tools_test::small_capture();
    bytes.resize(bytes.size() / 2);
    write_bytes(folder / "cut", bytes);
    for (const char* format : {"html", "folded", "speedscope", "perfetto", "ips"}) {
        INFO(format);
        const Outcome outcome = run(folder, std::string("report cut --format ") + format);
        CHECK(outcome.status == 3);
        CHECK(holds(outcome.out, "idle #0"));
        CHECK(holds(outcome.err, "cut: offset 0x"));
    }
}

TEST_CASE("--json is the same as the format, and of verify what its lines tell") {
    const TemporaryFolder folder;
    const Bytes bytes = tools_test::small_capture();
    write_bytes(folder / "a", bytes);
    for (const std::string verb : {"report", "analyze"}) {
        const Outcome flag = run(folder, verb + " a --json");
        CHECK(flag.status == 0);
        CHECK(flag.out == run(folder, verb + " a --format json").out);
    }
    const auto report = nlohmann::json::parse(run(folder, "report a --json").out);
    const auto& task = report["captures"][0]["tasks"][1];
    CHECK(task["name"] == "worker");
    CHECK(task["threads"][0]["name"] == "blocked");
    CHECK(task["threads"][0]["stack"][0]["address"] == "0x3004");
    CHECK(task["threads"][0]["system_usec"] == 1500);
    CHECK(report["captures"][0]["kernel"]["uuid"] == "00112233-4455-6677-8899-aabbccddeeff");
    const Outcome lines = run(folder, "verify a");
    const Outcome document = run(folder, "verify a --json");
    CHECK(document.status == lines.status);
    const auto verified = nlohmann::json::parse(document.out);
    REQUIRE(verified["violations"].size() ==
            static_cast<std::size_t>(std::count(lines.out.begin(), lines.out.end(), '\n')));
    for (const auto& violation : verified["violations"])
        CHECK(holds(lines.out, violation["rule"].get<std::string>() + ": " +
                                   violation["what"].get<std::string>()));
    CHECK(verified["buffers"].size() == 1);
    CHECK(verified["buffers"][0]["generation"] == 3);
}

TEST_CASE("diff compares the last captures of two files; a damaged one ends with 3") {
    const TemporaryFolder folder;
    Bytes bytes = tools_test::small_capture();
    write_bytes(folder / "a", bytes);
    Outcome outcome = run(folder, "diff a a");
    CHECK(outcome.status == 0);
    CHECK(outcome.out.starts_with("From a to a: 0 ns\n"));
    CHECK(holds(outcome.out, "stuck: the same stack in both (6)"));
    CHECK_FALSE(holds(outcome.out, "new threads"));
    const auto json = nlohmann::json::parse(run(folder, "diff a a --json").out);
    CHECK(json["threads"].size() == 8);
    bytes.resize(bytes.size() / 2);
    write_bytes(folder / "cut", bytes);
    outcome = run(folder, "diff a cut");
    CHECK(outcome.status == 3);
    CHECK(holds(outcome.out, "cut is damaged"));
    CHECK(holds(outcome.out, "gone threads"));
    CHECK(run(folder, "diff a nothing").status == 1);
    CHECK(run(folder, "diff a").status == 2);
}

TEST_CASE("profile merges the captures of all files, in every format that holds several") {
    const TemporaryFolder folder;
    const Bytes bytes = tools_test::small_capture();
    write_bytes(folder / "a", bytes);
    write_bytes(folder / "b", bytes);
    Outcome outcome = run(folder, "profile a b a");
    CHECK(outcome.status == 0);
    CHECK(outcome.out.starts_with("3 captures over 0 ns\n"));
    CHECK(holds(outcome.out, "thread 10 \"blocked\"  in 3 of 3"));
    CHECK(holds(run(folder, "profile a b --format folded").out, "0x0000000000002000 2\n"));
    const auto profile = nlohmann::json::parse(run(folder, "profile a b --format speedscope").out);
    CHECK(profile["profiles"][0]["samples"].size() == 16);
    CHECK(run(folder, "profile a --format ips").status == 2);
    CHECK(run(folder, "profile a nothing").status == 1);
    CHECK(run(folder, "profile a --every 1h").status == 2);
    write_bytes(folder / "b", Bytes(bytes.begin(), bytes.begin() + 2000));
    CHECK(run(folder, "profile a b").status == 3);
}

TEST_CASE("run that lets others talk to the image ends when it is told to") {
    const TemporaryFolder folder;
    write_fake_qemu(folder, {}, "exec sleep 60");
    constexpr const char* listen = "run --qemu ./qemu --image image --listen line";
    CHECK(run(folder, listen, "timeout --foreground --preserve-status -s TERM -k 30 1").status ==
          130);
    write_fake_qemu(folder, {}, "exit 0");
    CHECK(run(folder, listen).status == 0);
}

TEST_CASE("profile without files takes captures of the image, and leaves them if asked to") {
    const TemporaryFolder folder;
    Bytes line = tools_test::line_with(tools_test::small_capture());
    write_fake_qemu(folder, line, "echo \"$@\" >arguments; exit 0");
    constexpr const char* profile = "profile --qemu ./qemu --image image --count 1 --every 25ms";
    Outcome outcome = run(folder, profile);
    CHECK(outcome.status == 0);
    CHECK(outcome.out.starts_with("1 capture\n"));
    CHECK(holds(text_of(folder / "arguments"), " stackshot.count=1 "));
    CHECK(holds(text_of(folder / "arguments"), " stackshot.interval_ms=25"));
    CHECK(holds(text_of(folder / "arguments"), " stackshot.compress"));
    CHECK(read_bytes(folder / "a.kcdata").empty());
    CHECK(run(folder, std::string(profile) + " -o a.kcdata").status == 0);
    CHECK(read_bytes(folder / "a.kcdata") == tools_test::small_capture());
    CHECK(run(folder, std::string(profile) + " -o -").status == 2);
    // One of two is there: it is shown, and that the other is missing.
    outcome = run(folder, "profile --qemu ./qemu --image image --count 2");
    CHECK(outcome.status == 3);
    CHECK(outcome.out.starts_with("1 capture\n"));
    write_fake_qemu(folder, {}, "exit 0");
    outcome = run(folder, profile);
    CHECK(outcome.status == 1);
    CHECK(holds(outcome.err, "no capture arrived"));
}

TEST_CASE("symbols of another build are not used, and the status is 5") {
    const TemporaryFolder folder;
    write_bytes(folder / "a.kcdata", tools_test::small_capture());
    const Outcome outcome = run(folder, "report --elf '" SYMBOL_TARGET "' a.kcdata");
    CHECK(outcome.status == 5);
    CHECK(holds(outcome.err, "00112233445566778899aabbccddeeff"));
    CHECK(holds(outcome.out, "0x0000000000003004"));
    CHECK(holds(outcome.out, "no symbols"));
    CHECK(run(folder, "report --elf a.kcdata a.kcdata").status == 1);
}

TEST_CASE("what cannot be written ends with 1, also if the input is damaged") {
    const TemporaryFolder folder;
    Bytes capture = tools_test::small_capture();
    write_bytes(folder / "a.kcdata", capture);
    capture.resize(capture.size() - 8);
    write_bytes(folder / "cut.kcdata", capture);
    for (const std::string arguments :
         {"decode a.kcdata", "decode cut.kcdata", "decode --lines cut.kcdata", "dump cut.kcdata",
          "verify cut.kcdata", "decompress cut.kcdata"}) {
        INFO(arguments);
        // The redirections that run() adds are those of `cat`.
        const Outcome outcome = run(folder, arguments + " >/dev/full 2>told.txt; exit $?; cat");
        CHECK(outcome.status == 1);
        CHECK(holds(text_of(folder / "told.txt"), "standard output"));
    }
}

TEST_CASE("extract takes a capture out of a log, and names what is missing") {
    const TemporaryFolder folder;
    Bytes line = tools_test::line_with(tools_test::small_capture());
    write_bytes(folder / "uart.log", line);
    const Outcome whole = run(folder, "extract uart.log -o a.kcdata");
    CHECK(whole.status == 0);
    CHECK(read_bytes(folder / "a.kcdata") == tools_test::small_capture());

    line[line.size() / 2] ^= std::byte{1};
    write_bytes(folder / "uart.log", line);
    const Outcome damaged = run(folder, "extract uart.log -o b.kcdata");
    CHECK(damaged.status == 3);
    CHECK(holds(damaged.err, "missing: bytes "));
    CHECK(read_bytes(folder / "b.kcdata").empty());
    CHECK_FALSE(read_bytes(folder / "b.kcdata.partial").empty());
    CHECK(run(folder, "decode b.kcdata.partial").status == 3);

    write_text(folder / "uart.log", "console text\n");
    const Outcome none = run(folder, "extract uart.log -o c.kcdata");
    CHECK(none.status == 1);
    CHECK(holds(none.err, "no capture"));
}

TEST_CASE("capture reads standard input up to the capture it wants") {
    const TemporaryFolder folder;
    write_bytes(folder / "line", tools_test::line_with(tools_test::small_capture()));
    const Outcome outcome = run(folder, "capture - -o - ", "cat line |");
    CHECK(outcome.status == 0);
    CHECK(read_bytes(folder / "out.txt") == tools_test::small_capture());
    CHECK(holds(outcome.err, "console text"));
    const Outcome quiet = run(folder, "capture -q - -o a.kcdata", "cat line |");
    CHECK_FALSE(holds(quiet.err, "console text"));
}

TEST_CASE("a line that says nothing ends with 4 after the timeout, with 130 by Ctrl-C") {
    const TemporaryFolder folder;
    REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
    const Outcome silent = run(folder, "capture ./pipe --timeout 1");
    CHECK(silent.status == 4);
    CHECK(holds(silent.err, "gave up"));
    const Outcome interrupted =
        run(folder, "capture ./pipe", "timeout --foreground --preserve-status -s INT 2");
    CHECK(interrupted.status == 130);
}

TEST_CASE("run writes the capture, and shows the console up to the power-off") {
    const TemporaryFolder folder;
    write_fake_qemu(folder, tools_test::line_with(tools_test::small_capture()), "exit 0");
    const Outcome outcome = run(folder, std::string(run_fake) + " -v --log uart.log --append k=v");
    CHECK(outcome.status == 0);
    CHECK(outcome.out.empty());
    CHECK(holds(outcome.err, "power off"));
    CHECK(holds(outcome.err, "-machine virt"));
    CHECK(holds(outcome.err, "stackshot.then=off k=v'"));
    CHECK(read_bytes(folder / "a.kcdata") == tools_test::small_capture());
    CHECK(read_bytes(folder / "uart.log") == read_bytes(folder / "line"));
}

TEST_CASE("run says why there is no capture") {
    const TemporaryFolder folder;
    write_fake_qemu(folder, {}, "exit 0");
    Outcome outcome = run(folder, run_fake);
    CHECK(outcome.status == 1);
    CHECK(holds(outcome.err, "the image powered off after 0 of 1 captures"));

    write_fake_qemu(folder, {}, "echo bad option >&2; exit 1");
    outcome = run(folder, run_fake);
    CHECK(outcome.status == 1);
    CHECK(holds(outcome.err, "bad option"));
    CHECK(holds(outcome.err, "QEMU failed with status 1"));

    Bytes line = tools_test::line_with(tools_test::small_capture());
    line.resize(line.size() / 2);
    write_fake_qemu(folder, line, "exit 0");
    outcome = run(folder, run_fake);
    CHECK(outcome.status == 3);
    CHECK(holds(outcome.err, "missing: bytes "));
    CHECK(read_bytes(folder / "a.kcdata").empty());
}

TEST_CASE("run kills a QEMU that hangs: after the timeout with 4, by Ctrl-C with 130") {
    const TemporaryFolder folder;
    write_fake_qemu(folder, {}, "echo $$ >pid; exec sleep 1000");
    const auto still_there = [&] { return kill(std::stoi(text_of(folder / "pid")), 0) == 0; };
    const Outcome silent = run(folder, std::string(run_fake) + " --timeout 1");
    CHECK(silent.status == 4);
    CHECK_FALSE(still_there());
    const Outcome interrupted =
        run(folder, run_fake, "timeout --foreground --preserve-status -s INT 2");
    CHECK(interrupted.status == 130);
    CHECK_FALSE(still_there());
    // Not even a program that is killed leaves one behind.
    const Outcome killed = run(folder, run_fake, "timeout --foreground -s KILL 2");
    CHECK(killed.status == 137);
    for (int i = 0; i < 100 && still_there(); ++i)
        usleep(50'000);
    CHECK_FALSE(still_there());
}

TEST_CASE("a buffer that was compressed decompresses to itself, and decodes as it is") {
    const TemporaryFolder folder;
    const Bytes capture = tools_test::small_capture();
    write_bytes(folder / "a.kcdata", capture);
    const Outcome plain = run(folder, "decode a.kcdata");
    for (const char* options : {"", "--xnu", "--level 0", "--level 9"}) {
        INFO(options);
        const Outcome packed = run(folder, "compress a.kcdata -o c.kcdata " + std::string(options));
        CHECK(packed.status == 0);
        CHECK(packed.out.empty());
        CHECK(packed.err.empty());
        const Bytes compressed = read_bytes(folder / "c.kcdata");
        REQUIRE(compressed.size() > 240);
        CHECK(compressed[0] == std::byte{0x50});
        CHECK(run(folder, "decode c.kcdata").out == plain.out);
        CHECK(run(folder, "decompress c.kcdata -o p.kcdata").status == 0);
        CHECK(read_bytes(folder / "p.kcdata") == capture);
        CHECK(run(folder, "decompress -", "cat c.kcdata |").status == 0);
        CHECK(read_bytes(folder / "out.txt") == capture);
        // What is compressed is compressed anew, what is plain stays so.
        CHECK(run(folder, "compress c.kcdata -o d.kcdata " + std::string(options)).status == 0);
        CHECK(read_bytes(folder / "d.kcdata") == compressed);
        CHECK(run(folder, "decompress a.kcdata -o p.kcdata").status == 0);
        CHECK(read_bytes(folder / "p.kcdata") == capture);
    }
}

TEST_CASE("each of several buffers is compressed, and decompressed") {
    const TemporaryFolder folder;
    const Bytes one = tools_test::small_capture();
    Bytes two = one;
    two.insert(two.end(), one.begin(), one.end());
    write_bytes(folder / "two", two);
    REQUIRE(run(folder, "compress two -o packed").status == 0);
    CHECK(run(folder, "decompress packed -o unpacked").status == 0);
    CHECK(read_bytes(folder / "unpacked") == two);
}

TEST_CASE("a buffer without its end is not compressed") {
    const TemporaryFolder folder;
    Bytes capture = tools_test::small_capture();
    capture.resize(capture.size() - 8);
    write_bytes(folder / "a.kcdata", capture);
    const Outcome outcome = run(folder, "compress a.kcdata -o c.kcdata");
    CHECK(outcome.status == 1);
    CHECK(holds(outcome.err, "a.kcdata: buffer at 0x0: offset 0x"));
    CHECK(read_bytes(folder / "c.kcdata").empty());
}

TEST_CASE("of a damaged compressed buffer comes what is in front of the damage, and 3") {
    const TemporaryFolder folder;
    const Bytes capture = tools_test::small_capture();
    write_bytes(folder / "a.kcdata", capture);
    REQUIRE(run(folder, "compress --xnu a.kcdata -o c.kcdata").status == 0);
    Bytes cut = read_bytes(folder / "c.kcdata");
    cut.resize(cut.size() - 100);
    write_bytes(folder / "c.kcdata", cut);
    const Outcome outcome = run(folder, "decompress c.kcdata -o p.kcdata");
    CHECK(outcome.status == 3);
    CHECK(holds(outcome.err, "cut off"));
    CHECK(holds(outcome.err, "p.kcdata.partial"));
    CHECK(read_bytes(folder / "p.kcdata").empty());
    const Bytes partial = read_bytes(folder / "p.kcdata.partial");
    CHECK(partial.size() > 200);
    REQUIRE(partial.size() < capture.size());
    CHECK(std::equal(partial.begin(), partial.end(), capture.begin()));
    const Outcome piped = run(folder, "decompress c.kcdata");
    CHECK(piped.status == 3);
    CHECK(read_bytes(folder / "out.txt") == partial);
    CHECK(run(folder, "compress c.kcdata").status == 1);

    cut.resize(100);
    write_bytes(folder / "c.kcdata", cut);
    CHECK(run(folder, "decompress c.kcdata -o none").status == 1);
    CHECK(read_bytes(folder / "none.partial").empty());
}
