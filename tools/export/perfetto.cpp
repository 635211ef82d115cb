#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/export/export.hpp"
#include "tools/json_emitter.hpp"
#include "tools/snapshot_text.hpp"
#include "tools/stacks.hpp"
#include "tools/wait_graph.hpp"
#include "tools/wait_text.hpp"

// The JSON of Chrome's trace viewer, as its "Trace Event Format" has it and Perfetto reads it:
// complete events (ph X) that nest on each track, flow events (s, f) between the slices that
// enclose them, and metadata (M) with the names. ts and dur are microseconds; pid and tid are
// numbers of our own, as the viewers take no more than 32 bits.

namespace tools {

namespace {

/// Nanoseconds since the first capture's.
using Time = double;

struct Track {
    std::uint64_t pid = 0;
    std::uint64_t tid = 0;
};

struct Argument {
    std::string key{};
    std::string value{};
};
using Arguments = std::vector<Argument>;

std::string hexadecimal_number(std::uint64_t number) {
    return fmt::format("{:#x}", number);
}

struct Slice {
    std::string name{};
    const char* category = "";
    Arguments arguments{};
    Time begin = 0;
    Time end = 0;
};

/// An arrow between the innermost slices of two tracks at a time.
struct Arrow {
    Track from{};
    Track to{};
    const char* name = "";
    Time at = 0;
};

class Trace {
  public:
    void name_process(std::uint64_t pid, const std::string& name) {
        names_.push_back({"process_name", {pid, 0}, name});
    }
    void name_track(Track track, const std::string& name) {
        names_.push_back({"thread_name", track, name});
    }
    /// Of two that begin together on a track, the one around the other comes first or ends later.
    void add(Track track, Slice slice) { slices_.emplace_back(track, std::move(slice)); }
    void add(const Arrow& arrow) { arrows_.push_back(arrow); }

    /// `problems` is what is wrong with the captures.
    void write(const std::vector<std::string>& problems, TextSink& sink) {
        // Readers nest slices that begin together in the order they come.
        std::stable_sort(slices_.begin(), slices_.end(), [](const auto& a, const auto& b) {
            return std::pair(a.second.begin, -a.second.end) <
                   std::pair(b.second.begin, -b.second.end);
        });
        Writer(sink).run(*this, problems);
    }

  private:
    struct Name {
        const char* what = "";
        Track track{};
        std::string name{};
    };

    class Writer {
      public:
        explicit Writer(TextSink& sink) : json_(sink, 0) {}

        void run(const Trace& trace, const std::vector<std::string>& problems) {
            json_.begin_object();
            json_.text("displayTimeUnit", "ns");
            json_.key("otherData");
            json_.begin_object();
            json_.text("exporter", "stackshot");
            for (std::size_t i = 0; i < problems.size(); ++i)
                json_.text(fmt::format("incomplete {}", i + 1), problems[i]);
            json_.end_object();
            json_.key("traceEvents");
            json_.begin_array();
            for (const Name& name : trace.names_)
                write(name);
            for (const auto& [track, slice] : trace.slices_)
                write(track, slice);
            for (const Arrow& arrow : trace.arrows_)
                write(arrow);
            json_.end_array();
            json_.end_object();
            json_.line_feed();
        }

      private:
        void time(std::string_view key, Time value) {
            json_.key(key);
            json_.value(value / 1e3);
        }

        void open(std::string_view phase, Track track, std::string_view name) {
            json_.begin_object();
            json_.text("ph", phase);
            json_.text("name", name);
            json_.number("pid", track.pid);
            json_.number("tid", track.tid);
        }

        void write(const Name& name) {
            open("M", name.track, name.what);
            write(Arguments{{"name", name.name}});
            json_.end_object();
        }

        void write(Track track, const Slice& slice) {
            open("X", track, slice.name);
            json_.text("cat", slice.category);
            time("ts", slice.begin);
            time("dur", std::max(slice.end - slice.begin, 0.0));
            if (!slice.arguments.empty())
                write(slice.arguments);
            json_.end_object();
        }

        void write(const Arrow& arrow) {
            ++flows_;
            for (const bool start : {true, false}) {
                open(start ? "s" : "f", start ? arrow.from : arrow.to, arrow.name);
                json_.text("cat", "wait");
                time("ts", arrow.at);
                json_.number("id", flows_);
                // To the slice around it, not the next one.
                if (!start)
                    json_.text("bp", "e");
                json_.end_object();
            }
        }

        void write(const Arguments& arguments) {
            json_.key("args");
            json_.begin_object();
            for (const Argument& argument : arguments)
                json_.text(argument.key, argument.value);
            json_.end_object();
        }

        JsonEmitter json_;
        std::uint64_t flows_ = 0;
    };

    std::vector<Name> names_{};
    std::vector<std::pair<Track, Slice>> slices_{};
    std::vector<Arrow> arrows_{};
};

/// A capture, and when it is from.
struct Sample {
    const ExportedCapture* capture = nullptr;
    Time begin = 0;
    Time end = 0;  ///< when the next one begins; of the last one, when the system went on
};

/// How long the caller prepared a capture.
Time setup(const Sample& sample) {
    const Snapshot& snapshot = sample.capture->snapshot;
    return snapshot.latency ? snapshot.nanoseconds(snapshot.latency->setup_latency_mt).value_or(0)
                            : 0;
}

/// The captures in the order of their times; those that tell none behind the one before.
std::vector<Sample> in_order(std::span<const ExportedCapture> captures) {
    constexpr Time shown_at_least = 1000;
    std::vector<Sample> samples;
    Time last = 0;
    for (const ExportedCapture& capture : captures) {
        const Snapshot& snapshot = capture.snapshot;
        const auto time = snapshot.nanoseconds(snapshot.absolute_time);
        const Time begin = time.value_or(last);
        const Time end =
            begin + std::max(snapshot.nanoseconds(snapshot.duration).value_or(0), shown_at_least);
        samples.push_back({&capture, begin, end});
        last = end;
    }
    std::stable_sort(samples.begin(), samples.end(),
                     [](const Sample& a, const Sample& b) { return a.begin < b.begin; });
    const Time first = samples.empty() ? 0 : samples.front().begin - setup(samples.front());
    for (std::size_t i = 0; i < samples.size(); ++i) {
        samples[i].begin -= first;
        samples[i].end -= first;
        if (i != 0)
            samples[i - 1].end = samples[i].begin;
    }
    return samples;
}

/// Who collected what: a track for each CPU.
class CollectionTracks {
  public:
    explicit CollectionTracks(Trace& trace) : trace_(trace) {}

    void write(const Sample& sample) {
        const Snapshot& snapshot = sample.capture->snapshot;
        const auto nanoseconds = [&](std::uint64_t time) {
            return snapshot.nanoseconds(time).value_or(0);
        };
        for (const kcdata::stackshot_latency_cpu& cpu : snapshot.cpu_latencies) {
            const Track track = track_of(cpu.cpu_number);
            const Time end = sample.begin + nanoseconds(cpu.total_latency_mt);
            const Time ready = std::min(sample.begin + nanoseconds(cpu.init_latency_mt), end);
            const Time idle = std::max(end - nanoseconds(cpu.workqueue_latency_mt), ready);
            add(track, "collection", sample.begin, end,
                {{"capture", sample.capture->place},
                 {"cluster_type", fmt::format("{}", cpu.cluster_type)},
                 {"tasks_processed", fmt::format("{}", cpu.tasks_processed)},
                 {"threads_processed", fmt::format("{}", cpu.threads_processed)},
                 {"total_cycles", fmt::format("{}", cpu.total_cycles)},
                 {"total_instrs", fmt::format("{}", cpu.total_instrs)},
                 {"total_buf", fmt::format("{}", cpu.total_buf)},
                 {"intercluster_buf_used", fmt::format("{}", cpu.intercluster_buf_used)}});
            const Arguments sum{{"when", "not recorded: this is the sum"}};
            add(track, "init", sample.begin, ready);
            add(track, "recording", ready, idle, sum);
            add(track, "waiting for work items", idle, end, sum);
        }
        if (!snapshot.latency || snapshot.latency->latency_version < 2)
            return;
        const auto& latency = *snapshot.latency;
        const Track caller = track_of(latency.calling_cpu_number);
        add(caller, "setup", sample.begin - setup(sample), sample.begin);
        for (const kcdata::stackshot_latency_cpu& cpu : snapshot.cpu_latencies)
            if (cpu.cpu_number == latency.calling_cpu_number) {
                const Time begin = sample.begin + nanoseconds(cpu.total_latency_mt);
                add(caller, "waiting for the other CPUs", begin,
                    begin + nanoseconds(latency.cpu_wait_latency_mt));
            }
    }

  private:
    void add(Track track, const char* name, Time begin, Time end, Arguments arguments = {}) {
        trace_.add(track, {name, "collection", std::move(arguments), begin, end});
    }

    Track track_of(std::int32_t cpu) {
        const Track track{process, static_cast<std::uint64_t>(static_cast<std::uint32_t>(cpu))};
        if (!named_.empty() && std::find(named_.begin(), named_.end(), cpu) != named_.end())
            return track;
        if (named_.empty())
            trace_.name_process(process, "stackshot: CPUs that collect");
        named_.push_back(cpu);
        trace_.name_track(track, fmt::format("CPU {}", cpu));
        return track;
    }

    static constexpr std::uint64_t process = 1;

    Trace& trace_;
    std::vector<std::int32_t> named_{};
};

/// What the threads were at: a process for each task, a track for each thread. The slices of two
/// captures in a row that agree are one.
class ThreadTracks {
  public:
    explicit ThreadTracks(Trace& trace) : trace_(trace) {}

    void write(const Sample& sample) {
        const Snapshot& snapshot = sample.capture->snapshot;
        const Stacks stacks(snapshot, sample.capture->symbols);
        const WaitGraph graph = make_wait_graph(snapshot);
        std::map<std::uint64_t, const ThreadTrack*> by_id;
        for (const TaskSnapshot& task : snapshot.tasks) {
            add_recording(sample, task);
            for (const ThreadSnapshot& thread : task.threads) {
                ThreadTrack& track = track_of(task, thread);
                track.seen = true;
                by_id.emplace(thread.id, &track);
                std::vector<Slice> slices;
                slices.push_back(state_slice(graph, thread));
                const auto frames = stacks.whole_stack(task, thread);
                for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
                    slices.push_back(frame_slice(*frame, stacks));
                advance(track, std::move(slices), sample.begin);
            }
        }
        for (auto& [key, track] : threads_)
            if (!std::exchange(track.seen, false))
                advance(track, {}, sample.begin);
        const Time middle = sample.begin + (sample.end - sample.begin) / 2;
        for (const WaitGraph::Wait& wait : graph.waits) {
            if (wait.blocker != WaitGraph::Blocker::thread)
                continue;
            const auto from = by_id.find(graph.threads[wait.thread].id);
            const auto to = by_id.find(graph.threads[wait.blocked_by].id);
            if (from != by_id.end() && to != by_id.end())
                trace_.add(Arrow{from->second->track, to->second->track,
                                 wait.type != nullptr ? wait.type->waits : "waits", middle});
        }
    }

    /// Ends what is going on.
    void finish(Time end) {
        for (auto& [key, track] : threads_)
            advance(track, {}, end);
    }

  private:
    struct ThreadTrack {
        Track track{};
        /// What goes on, outermost first.
        std::vector<Slice> open{};
        bool seen = false;
    };
    static Slice state_slice(const WaitGraph& graph, const ThreadSnapshot& thread) {
        const std::size_t index = graph.find_thread(thread.id);
        Slice slice{.name = activity_text(graph, index), .category = "state"};
        if (thread.sched_priority)
            slice.arguments.push_back({"priority", fmt::format("{}", *thread.sched_priority)});
        if (const WaitGraph::Wait* const wait = graph.wait_of(index))
            slice.arguments.push_back({"wait", chain_text(graph, *wait)});
        if (thread.unchanged)
            slice.arguments.push_back({"unchanged", "has not run since the capture before"});
        return slice;
    }

    static Slice frame_slice(const StackFrame& frame, const Stacks& stacks) {
        Slice slice{.name = frame.name(), .category = frame.user ? "user" : "kernel"};
        slice.arguments.push_back({"address", hexadecimal_number(frame.address)});
        if (!frame.file.empty())
            slice.arguments.push_back({"source", frame.place()});
        if (frame.image) {
            const LoadInfo& image = stacks.images().all()[*frame.image].info;
            slice.arguments.push_back({"image", uuid_text(image.uuid)});
            slice.arguments.push_back({"load address", hexadecimal_number(image.address)});
        }
        return slice;
    }

    /// How long the parts of a task's record took, one behind the other. Neither when nor by which
    /// CPU is recorded.
    void add_recording(const Sample& sample, const TaskSnapshot& task) {
        if (!task.latency)
            return;
        const kcdata::stackshot_latency_task& latency = *task.latency;
        const std::pair<const char*, std::uint64_t> parts[] = {
            {"setup", latency.setup_latency},
            {"thread count loop", latency.task_thread_count_loop_latency},
            {"snapshot", latency.cur_tsnap_latency},
            {"pmap", latency.pmap_latency},
            {"BSD process ids", latency.bsd_proc_ids_latency},
            {"misc", latency.misc_latency},
            {"misc2", latency.misc2_latency},
            {"thread data loop", latency.task_thread_data_loop_latency},
            {"end", latency.end_latency},
        };
        const Track track{process_of(task), 0};
        if (recorded_.insert(track.pid).second)
            trace_.name_track(track, "how long its record took");
        std::vector<Slice> slices{{"record of the task",
                                   "record",
                                   {{"when", "not recorded: shown where the collection begins"}},
                                   sample.begin,
                                   sample.begin}};
        for (const auto& [name, time] : parts) {
            const Time begin = slices.front().end;
            slices.front().end += sample.capture->snapshot.nanoseconds(time).value_or(0);
            if (time != 0)
                slices.push_back({name, "record", {}, begin, slices.front().end});
        }
        for (Slice& slice : slices)
            trace_.add(track, std::move(slice));
    }

    std::uint64_t process_of(const TaskSnapshot& task) {
        constexpr std::uint64_t first_process = 2;
        const auto [process, is_new] =
            processes_.try_emplace(task.unique_pid, first_process + processes_.size());
        if (is_new)
            trace_.name_process(process->second, task_title(task));
        return process->second;
    }

    ThreadTrack& track_of(const TaskSnapshot& task, const ThreadSnapshot& thread) {
        const std::uint64_t process = process_of(task);
        const auto [found, is_new] = threads_.try_emplace({task.unique_pid, thread.id});
        ThreadTrack& track = found->second;
        if (is_new) {
            track.track = {process, threads_.size()};
            trace_.name_track(track.track, thread_title(thread));
        }
        return track;
    }

    /// From `now` on, `next` is what goes on.
    void advance(ThreadTrack& track, std::vector<Slice> next, Time now) {
        std::size_t same = 0;
        while (same < std::min(track.open.size(), next.size()) &&
               track.open[same].name == next[same].name)
            ++same;
        for (std::size_t i = same; i < track.open.size(); ++i) {
            track.open[i].end = now;
            trace_.add(track.track, std::move(track.open[i]));
        }
        track.open.resize(same);
        for (std::size_t i = same; i < next.size(); ++i) {
            next[i].begin = now;
            track.open.push_back(std::move(next[i]));
        }
    }

    Trace& trace_;
    /// By unique pid.
    std::map<std::uint64_t, std::uint64_t> processes_{};
    /// Those with a track for their record.
    std::set<std::uint64_t> recorded_{};
    /// By unique pid and thread id.
    std::map<std::pair<std::uint64_t, std::uint64_t>, ThreadTrack> threads_{};
};

}  // namespace

void write_perfetto(std::span<const ExportedCapture> captures, TextSink& sink) {
    const std::vector<Sample> samples = in_order(captures);
    Trace trace;
    CollectionTracks collection(trace);
    ThreadTracks threads(trace);
    for (const Sample& sample : samples) {
        collection.write(sample);
        threads.write(sample);
    }
    threads.finish(samples.empty() ? 0 : samples.back().end);
    trace.write(problems_of(captures), sink);
}

}  // namespace tools
