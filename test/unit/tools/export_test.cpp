#include "tools/export/export.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
#include <sstream>

#include "../reference_samples.hpp"
#include "captures.hpp"
#include "fake_symbolizer.hpp"
#include "kcdata/records.hpp"
#include "strict_json.hpp"
#include "tools/input.hpp"

using namespace tools;
using nlohmann::json;
using tools_test::FakeSymbolizer;
using tools_test::parse_strictly;

namespace {

std::string write(const char* format, std::span<const ExportedCapture> captures) {
    const ExportFormat* const found = find_export_format(format);
    REQUIRE(found != nullptr);
    std::string text;
    StringSink sink(text);
    found->write(captures, sink);
    return text;
}

ThreadSnapshot thread(std::uint64_t id, std::string name, std::vector<std::uint64_t> stack) {
    ThreadSnapshot thread;
    thread.id = id;
    thread.name = std::move(name);
    thread.state = kcdata::SS_TH_WAIT;
    thread.kernel_stack = std::move(stack);
    return thread;
}

/// A capture at `time` ns of two threads, the first of which waits for a mutex of the second.
ExportedCapture waiting(std::uint64_t time = 1000) {
    ExportedCapture capture;
    capture.place = "capture";
    Snapshot& snapshot = capture.snapshot;
    snapshot.timebase = Timebase{};
    snapshot.absolute_time = time;
    snapshot.duration = 4000;
    TaskSnapshot& task = snapshot.tasks.emplace_back();
    task.unique_pid = 70;
    task.pid = 7;
    task.name = "work;er";
    task.threads.push_back(thread(10, "a\nb", {0xffff000000000104, 0xffff000000000204}));
    task.threads.push_back(thread(11, "", {0xffff000000000304, 0xffff000000000204}));
    task.threads.back().state = kcdata::SS_TH_RUN;
    task.wait_infos.push_back({.waiter = 10,
                               .owner = 11,
                               .context = 0xffff000000001000,
                               .wait_type = kcdata::kThreadWaitKernelMutex});
    return capture;
}

/// Lines of folded stacks by their grammar: frames without semicolon or line feed, and a count.
std::map<std::string, unsigned> folded_lines(const std::string& text) {
    std::map<std::string, unsigned> lines;
    std::istringstream stream(text);
    REQUIRE((text.empty() || text.back() == '\n'));
    for (std::string line; std::getline(stream, line);) {
        INFO(line);
        const std::size_t blank = line.rfind(' ');
        REQUIRE(blank != std::string::npos);
        const std::string stack = line.substr(0, blank), count = line.substr(blank + 1);
        CHECK_FALSE(count.empty());
        CHECK(count.find_first_not_of("0123456789") == std::string::npos);
        CHECK_FALSE(stack.starts_with(';'));
        CHECK_FALSE(stack.ends_with(';'));
        CHECK(stack.find(";;") == std::string::npos);
        CHECK(lines.emplace(stack, std::stoul(count)).second);
    }
    return lines;
}

// The rules of speedscope's file-format-schema.json, and what its viewer needs beyond them.
void check_speedscope(const json& file) {
    CHECK(file.at("$schema") == "https://www.speedscope.app/file-format-schema.json");
    for (const char* key : {"name", "exporter"})
        CHECK((!file.contains(key) || file[key].is_string()));
    const json& frames = file.at("shared").at("frames");
    REQUIRE(frames.is_array());
    for (const json& frame : frames) {
        CHECK(frame.at("name").is_string());
        CHECK((!frame.contains("file") || frame["file"].is_string()));
        CHECK((!frame.contains("line") || frame["line"].is_number()));
        CHECK((!frame.contains("col") || frame["col"].is_number()));
    }
    static const std::set<std::string> units{"bytes",       "microseconds", "milliseconds",
                                             "nanoseconds", "none",         "seconds"};
    REQUIRE(file.at("profiles").is_array());
    if (file.contains("activeProfileIndex"))
        CHECK(file["activeProfileIndex"].get<std::size_t>() < file["profiles"].size());
    for (const json& profile : file["profiles"]) {
        REQUIRE(profile.at("type") == "sampled");
        CHECK(profile.at("name").is_string());
        CHECK(units.contains(profile.at("unit").get<std::string>()));
        const json& samples = profile.at("samples");
        const json& weights = profile.at("weights");
        REQUIRE(samples.is_array());
        REQUIRE(weights.size() == samples.size());
        double sum = 0;
        for (const json& weight : weights)
            sum += weight.get<double>();
        CHECK(profile.at("endValue").get<double>() - profile.at("startValue").get<double>() == sum);
        for (const json& sample : samples)
            for (const json& frame : sample)
                CHECK(frame.get<std::uint64_t>() < frames.size());
    }
}

/// The stack of the only sample of a profile, outermost first.
std::vector<std::string> speedscope_stack(const json& file, std::size_t profile,
                                          std::size_t sample = 0) {
    std::vector<std::string> names;
    for (const json& frame : file["profiles"][profile]["samples"][sample])
        names.push_back(file["shared"]["frames"][frame.get<std::size_t>()]["name"]);
    return names;
}

using Names = std::vector<std::string>;

bool browser_reads_exactly(const json& value) {
    if (value.is_number_integer()) {
        constexpr std::int64_t largest = std::int64_t{1} << 53;
        if (value.is_number_unsigned())
            return value.get<std::uint64_t>() <= static_cast<std::uint64_t>(largest);
        return value.get<std::int64_t>() >= -largest;
    }
    if (!value.is_structured())
        return true;
    return std::all_of(value.begin(), value.end(), browser_reads_exactly);
}

/// A trace by the rules of the Trace Event Format for the phases X, M, s and f.
struct PerfettoTrace {
    explicit PerfettoTrace(const json& file) {
        for (const json& event : file.at("traceEvents")) {
            INFO(event);
            const std::string phase = event.at("ph");
            CHECK(event.at("name").is_string());
            const Key track{event.at("pid").get<std::uint32_t>(),
                            event.at("tid").get<std::uint32_t>()};
            if (phase == "M") {
                names[{event["name"], track}] = event.at("args").at("name");
            } else if (phase == "X") {
                CHECK(event.at("dur").get<double>() >= 0);
                CHECK(event.at("ts").get<double>() >= 0);
                slices[track].push_back(event);
            } else if (phase == "s") {
                CHECK(starts.emplace(event.at("id").get<std::uint64_t>(), event).second);
            } else {
                REQUIRE(phase == "f");
                CHECK(event.at("bp") == "e");
                CHECK(ends.emplace(event.at("id").get<std::uint64_t>(), event).second);
            }
        }
        for (const auto& [track, events] : slices) {
            CHECK(names.contains({"process_name", {track.first, 0}}));
            CHECK(names.contains({"thread_name", track}));
            check_nesting(events);
        }
        CHECK(starts.size() == ends.size());
        for (const auto& [id, start] : starts) {
            REQUIRE(ends.contains(id));
            const json& end = ends[id];
            CHECK(start.at("cat") == end.at("cat"));
            CHECK(start["name"] == end["name"]);
            CHECK(start.at("ts").get<double>() <= end.at("ts").get<double>());
            CHECK_FALSE(at(start).empty());
            CHECK_FALSE(at(end).empty());
        }
    }

    /// The names of the slices around an event, in the order of the file.
    Names at(const json& event) const {
        Names found;
        const auto track = slices.find({event["pid"], event["tid"]});
        const double time = event["ts"];
        if (track != slices.end())
            for (const json& slice : track->second)
                if (slice["ts"].get<double>() <= time &&
                    time <= slice["ts"].get<double>() + slice["dur"].get<double>())
                    found.push_back(slice["name"]);
        return found;
    }

    using Key = std::pair<std::uint32_t, std::uint32_t>;
    std::map<std::pair<std::string, Key>, std::string> names{};
    std::map<Key, std::vector<json>> slices{};
    std::map<std::uint64_t, json> starts{}, ends{};

  private:
    /// Each lies in the one around it or behind it, and comes after it in the file.
    static void check_nesting(const std::vector<json>& events) {
        std::vector<std::pair<double, double>> open;
        double last = 0;
        constexpr double rounding = 1e-6;
        for (const json& event : events) {
            INFO(event);
            const double begin = event["ts"], end = begin + event["dur"].get<double>();
            CHECK(begin >= last);
            last = begin;
            while (!open.empty() && open.back().second <= begin + rounding)
                open.pop_back();
            if (!open.empty())
                CHECK(end <= open.back().second + rounding);
            open.emplace_back(begin, end);
        }
    }
};

/// An ips: its header and its body.
struct Ips {
    explicit Ips(const std::string& text)
        : header(parse_strictly(text.substr(0, text.find('\n')))),
          body(parse_strictly(text.substr(text.find('\n') + 1))) {
        CHECK(header.at("bug_type") == 288);
        const json& images = body.at("binaryImages");
        for (const json& image : images) {
            REQUIRE(image.size() == 3);
            const std::string uuid = image[0];
            CHECK(uuid.size() == 32);
            CHECK(uuid.find_first_not_of("0123456789abcdef") == std::string::npos);
            CHECK(image[1].is_number_unsigned());
            CHECK(std::string("PSCUKTA").find(image[2].get<std::string>()) != std::string::npos);
        }
        for (const json& process : body.at("processByPid"))
            for (const json& thread : process.at("threadById"))
                for (const char* stack : {"kernelFrames", "userFrames"})
                    for (const json& frame : thread.value(stack, json::array()))
                        CHECK(frame.at(0).get<std::size_t>() < images.size());
    }

    std::vector<std::uint64_t> addresses(const json& frames) const {
        std::vector<std::uint64_t> result;
        for (const json& frame : frames)
            result.push_back(
                body["binaryImages"][frame[0].get<std::size_t>()][1].get<std::uint64_t>() +
                frame[1].get<std::uint64_t>());
        return result;
    }

    json header, body;
};

}  // namespace

TEST_CASE("folded stacks are task, thread and frames, outermost first, and how many there are") {
    const ExportedCapture captures[] = {waiting(), waiting(), waiting()};
    const auto lines = folded_lines(write("folded", captures));
    CHECK(lines ==
          std::map<std::string, unsigned>{
              {"work:er [7];thread 10 \"a\\x0ab\";0xffff000000000204;0xffff000000000104", 3},
              {"work:er [7];thread 11;0xffff000000000204;0xffff000000000304", 3}});
}

TEST_CASE(
    "a tree has the frames of a thread with the captures that have them, and what it was at") {
    ExportedCapture captures[] = {waiting(1'000'000), waiting(2'000'000), waiting(4'000'000)};
    Snapshot& last = captures[2].snapshot;
    last.tasks[0].threads[1].kernel_stack = {0xffff000000000504, 0xffff000000000204};
    last.tasks[0].threads[1].state = kcdata::SS_TH_WAIT;
    for (ExportedCapture& capture : captures) {
        Snapshot& snapshot = capture.snapshot;
        snapshot.tasks[0].threads.erase(snapshot.tasks[0].threads.begin());
        snapshot.tasks[0].wait_infos.clear();
        snapshot.tasks[0].threads[0].user_usec = *snapshot.absolute_time / 1000;
        snapshot.tasks[0].threads[0].system_usec = 7;
    }
    CHECK(write("tree", captures) ==
          "3 captures over 3.000 ms\n"
          "\nwork;er [7]\n"
          "  thread 11  in 3 of 3, used 3.000 ms\n"
          "        2  is runnable, but not running\n"
          "        1  waits, for what is not recorded\n"
          "          3  0xffff000000000204\n"
          "            2  0xffff000000000304\n"
          "            1  0xffff000000000504\n");
}

TEST_CASE("speedscope gets a profile of all threads and one of each, of all captures") {
    const ExportedCapture captures[] = {waiting(), waiting()};
    const json file = parse_strictly(write("speedscope", captures));
    check_speedscope(file);
    REQUIRE(file["profiles"].size() == 3);
    CHECK(file["profiles"][0]["name"] == "all threads");
    CHECK(file["profiles"][0]["samples"].size() == 4);
    CHECK(file["profiles"][1]["name"] == "work;er [7], thread 10 \"a\\x0ab\"");
    CHECK(file["profiles"][2]["name"] == "work;er [7], thread 11");
    CHECK(file["profiles"][2]["samples"].size() == 2);
    CHECK(speedscope_stack(file, 0) == Names{"work;er [7]", "thread 10 \"a\\x0ab\"",
                                             "0xffff000000000204", "0xffff000000000104"});
    CHECK(speedscope_stack(file, 2, 1) == Names{"0xffff000000000204", "0xffff000000000304"});
}

TEST_CASE("speedscope's frames have the source's name, also those inlined") {
    FakeSymbolizer symbols;
    ExportedCapture capture;
    const auto bytes = tools_test::small_capture();
    capture.snapshot = read_snapshot(bytes);
    capture.symbols = &symbols;
    const json file = parse_strictly(write("speedscope", {&capture, 1}));
    check_speedscope(file);
    CHECK(speedscope_stack(file, 1) ==
          Names{"kernel::thread_main", "kernel::spin", "kernel::leaf"});
    const json& frames = file["shared"]["frames"];
    const auto leaf = std::find_if(frames.begin(), frames.end(), [](const json& frame) {
        return frame["name"] == "kernel::leaf";
    });
    REQUIRE(leaf != frames.end());
    CHECK((*leaf)["file"] == "kernel/leaf.cpp");
}

TEST_CASE("a trace has a thread's state, and in it the stack, from one capture to the next") {
    ExportedCapture captures[] = {waiting(1'000'000), waiting(3'000'000), waiting(6'000'000)};
    captures[2].snapshot.tasks[0].threads[0].kernel_stack = {0xffff000000000404,
                                                             0xffff000000000204};
    const json file = parse_strictly(write("perfetto", captures));
    CHECK(browser_reads_exactly(file));
    const PerfettoTrace trace(file);
    REQUIRE(trace.slices.size() == 2);
    const auto& [track, slices] = *trace.slices.begin();
    CHECK(trace.names.at({"process_name", {track.first, 0}}) == "work;er [7]");
    CHECK(trace.names.at({"thread_name", track}) == "thread 10 \"a\\x0ab\"");
    REQUIRE(slices.size() == 4);
    CHECK(slices[0]["name"] ==
          "waits for mutex 0xffff000000001000 held by thread 11 (task "
          "\"work;er\" [pid 7])");
    CHECK(slices[0]["ts"] == 0);
    CHECK(slices[0]["dur"] == 5004);  // until the system went on
    CHECK(slices[1]["name"] == "0xffff000000000204");
    CHECK(slices[1]["dur"] == 5004);
    CHECK(slices[1]["args"]["address"] == "0xffff000000000204");
    CHECK(slices[2]["name"] == "0xffff000000000104");
    CHECK(slices[2]["dur"] == 5000);
    CHECK(slices[3]["name"] == "0xffff000000000404");
    CHECK(slices[3]["ts"] == 5000);
}

TEST_CASE("a trace has an arrow from each waiting thread to the one it waits for") {
    const ExportedCapture capture = waiting();
    const PerfettoTrace trace(parse_strictly(write("perfetto", {&capture, 1})));
    REQUIRE(trace.starts.size() == 1);
    CHECK(trace.starts.begin()->second["name"] == "waits for");
    CHECK(trace.at(trace.starts.begin()->second).back() == "0xffff000000000104");
    CHECK(trace.at(trace.ends.begin()->second).back() == "0xffff000000000304");
}

TEST_CASE("a trace shows for each CPU how long it collected, got ready and had nothing to do") {
    ExportedCapture capture = waiting(50'000);
    capture.snapshot.cpu_latencies.resize(2);
    kcdata::stackshot_latency_cpu& first = capture.snapshot.cpu_latencies[0];
    first.init_latency_mt = 100;
    first.workqueue_latency_mt = 300;
    first.total_latency_mt = 2000;
    first.tasks_processed = 5;
    capture.snapshot.cpu_latencies[1].cpu_number = 2;
    capture.snapshot.cpu_latencies[1].total_latency_mt = 1000;
    kcdata::stackshot_latency_collection_v2& whole = capture.snapshot.latency.emplace();
    whole.latency_version = 2;
    whole.setup_latency_mt = 10'000;
    whole.cpu_wait_latency_mt = 500;
    const PerfettoTrace trace(parse_strictly(write("perfetto", {&capture, 1})));
    const auto& cpu0 = trace.slices.at({1, 0});
    const auto expect = [&](std::size_t i, const char* name, double ts, double dur) {
        CHECK(cpu0.at(i)["name"] == name);
        CHECK(std::abs(cpu0.at(i)["ts"].get<double>() - ts) < 1e-6);
        CHECK(std::abs(cpu0.at(i)["dur"].get<double>() - dur) < 1e-6);
    };
    expect(0, "setup", 0, 10);
    expect(1, "collection", 10, 2);
    CHECK(cpu0[1]["args"]["tasks_processed"] == "5");
    expect(2, "init", 10, 0.1);
    expect(3, "recording", 10.1, 1.6);
    expect(4, "waiting for work items", 11.7, 0.3);
    expect(5, "waiting for the other CPUs", 12, 0.5);
    CHECK(trace.slices.at({1, 2}).front()["dur"] == 1);
    CHECK(trace.names.at({"thread_name", {1, 2}}) == "CPU 2");
}

TEST_CASE("a trace shows how long the parts of a task's record took") {
    ExportedCapture capture = waiting();
    kcdata::stackshot_latency_task& latency = capture.snapshot.tasks[0].latency.emplace();
    latency.setup_latency = 100;
    latency.task_thread_data_loop_latency = 300;
    const PerfettoTrace trace(parse_strictly(write("perfetto", {&capture, 1})));
    const auto& slices = trace.slices.at({2, 0});
    REQUIRE(slices.size() == 3);
    CHECK(slices[0]["name"] == "record of the task");
    CHECK(slices[0]["dur"] == 0.4);
    CHECK(slices[1]["name"] == "setup");
    CHECK(slices[1]["dur"] == 0.1);
    CHECK(slices[2]["name"] == "thread data loop");
    CHECK(slices[2]["dur"] == 0.3);
}

TEST_CASE("captures without times follow one another in a trace") {
    ExportedCapture captures[] = {waiting(), waiting()};
    for (ExportedCapture& capture : captures) {
        capture.snapshot.absolute_time.reset();
        capture.snapshot.tasks[0].wait_infos.clear();
    }
    captures[1].snapshot.tasks[0].threads.pop_back();
    const PerfettoTrace trace(parse_strictly(write("perfetto", captures)));
    CHECK(trace.slices.begin()->second.front()["dur"] == 8);
    CHECK(trace.slices.rbegin()->second.front()["dur"] == 4);
}

TEST_CASE("an ips has the frames as offsets in images that it lists with their UUIDs") {
    ExportedCapture capture = waiting();
    Snapshot& snapshot = capture.snapshot;
    snapshot.os_version = "Darwin";
    snapshot.usecs_since_epoch = 1'700'000'000'000'000;
    snapshot.kernel = LoadInfo{0xffff000000000200, {0xab, 0xcd}};
    TaskSnapshot& task = snapshot.tasks.front();
    task.images = {{0x100000000, {1}}};
    task.threads[0].user_stack = {0x100000abc};
    task.threads[0].user_time = 1'500'000'000;
    const Ips ips(write("ips", {&capture, 1}));
    CHECK(ips.header["timestamp"] == "2023-11-14 22:13:20 +0000");
    CHECK(ips.header["os_version"] == "Darwin");
    const json& process = ips.body["processByPid"].at("70");
    CHECK(process["pid"] == 7);
    CHECK(process["procname"] == "work;er");
    CHECK(process["waitInfo"] ==
          json{"thread 10: waits for mutex 0xffff000000001000 held by thread 11 (task \"work;er\" "
               "[pid 7])"});
    const json& first = process["threadById"].at("10");
    CHECK(first["state"] == json{"TH_WAIT"});
    CHECK(first["userTime"] == 1.5);
    CHECK(first["userFrames"][0][1] == 0xabc);
    CHECK(ips.addresses(first["kernelFrames"]) ==
          std::vector<std::uint64_t>{0xffff000000000104, 0xffff000000000204});
    const auto image = [&](const json& frame) -> const json& {
        return ips.body["binaryImages"][frame[0].get<std::size_t>()];
    };
    CHECK(image(first["userFrames"][0]) ==
          json{"01000000000000000000000000000000", 0x100000000, "P"});
    CHECK(image(first["kernelFrames"][1]) ==
          json{"abcd0000000000000000000000000000", 0xffff000000000200, "U"});
    CHECK(image(first["kernelFrames"][0])[2] == "A");  // below all images
}

TEST_CASE("an ips of an incomplete capture says so") {
    ExportedCapture capture = waiting();
    CHECK(Ips(write("ips", {&capture, 1})).body["reason"] == "stackshot");
    capture.snapshot.problems = {"offset 0x40: cut"};
    const Ips ips(write("ips", {&capture, 1}));
    CHECK(ips.body["reason"] == "INCOMPLETE stackshot");
    CHECK(ips.body["notes"].get<std::string>().find("offset 0x40: cut") != std::string::npos);
}

TEST_CASE("a profile and a trace of an incomplete capture say so") {
    ExportedCapture capture = waiting();
    json file = parse_strictly(write("speedscope", {&capture, 1}));
    CHECK(file["name"] == "stackshot");
    capture.problems = {"the gzip data is cut off"};
    capture.snapshot.problems = {"offset 0x40: cut"};
    file = parse_strictly(write("speedscope", {&capture, 1}));
    CHECK(file["name"] ==
          "INCOMPLETE stackshot; capture: the gzip data is cut off; capture: offset "
          "0x40: cut");
    file = parse_strictly(write("perfetto", {&capture, 1}));
    CHECK(file["otherData"]["incomplete 2"] == "capture: offset 0x40: cut");
}

TEST_CASE("two tasks or threads of one id are both in an ips") {
    ExportedCapture capture = waiting();
    TaskSnapshot& task = capture.snapshot.tasks.front();
    task.threads.push_back(task.threads.front());
    capture.snapshot.tasks.push_back(task);
    const Ips ips(write("ips", {&capture, 1}));
    CHECK(ips.body["processByPid"].size() == 2);
    CHECK(ips.body["processByPid"]["70 (2)"]["threadById"].size() == 3);
    CHECK(ips.body["processByPid"]["70"]["threadById"].contains("10 (2)"));
}

TEST_CASE("every format takes what real kernels capture, whole and cut anywhere") {
    for_each_reference_sample([](const std::filesystem::path& path, auto bytes) {
        const auto input = Input::of({bytes.begin(), bytes.end()}, path.string());
        REQUIRE(input.ok());
        const auto whole = input.value().buffers().front().bytes;
        for (const std::size_t size : {whole.size(), whole.size() * 2 / 3, whole.size() / 3}) {
            ExportedCapture capture;
            capture.place = path.filename().string();
            capture.buffer = whole.first(size);
            capture.snapshot = read_snapshot(capture.buffer);
            std::size_t threads = 0;
            for (const TaskSnapshot& task : capture.snapshot.tasks)
                threads += task.threads.size();
            folded_lines(write("folded", {&capture, 1}));
            const json speedscope = parse_strictly(write("speedscope", {&capture, 1}));
            check_speedscope(speedscope);
            CHECK(speedscope["profiles"][0]["samples"].size() == threads);
            const json perfetto = parse_strictly(write("perfetto", {&capture, 1}));
            CHECK(browser_reads_exactly(perfetto));
            const PerfettoTrace trace(perfetto);
            const Ips ips(write("ips", {&capture, 1}));
            CHECK(ips.body["processByPid"].size() == capture.snapshot.tasks.size());
            for (const TaskSnapshot& task : capture.snapshot.tasks)
                for (const ThreadSnapshot& each : task.threads) {
                    const json& shown = ips.body["processByPid"][std::to_string(task.unique_pid)]
                                                ["threadById"][std::to_string(each.id)];
                    if (each.user_stack)
                        CHECK(ips.addresses(shown["userFrames"]) == *each.user_stack);
                }
        }
    });
}
