#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/export/export.hpp"
#include "tools/json_emitter.hpp"
#include "tools/printable.hpp"
#include "tools/snapshot_text.hpp"
#include "tools/stacks.hpp"

// speedscope's own format, by the schema that its npm package holds (file-format-schema.json):
// frames once, in a table; profiles of samples, each a list of indices, outermost first.

namespace tools {

namespace {

using Sample = std::vector<std::uint64_t>;

/// A thread of one or more captures.
struct ThreadProfile {
    std::string name{};
    /// One for each capture that has the thread.
    std::vector<Sample> samples{};
};

class Profiles {
  public:
    void take(const ExportedCapture& capture) {
        const Stacks stacks(capture.snapshot, capture.symbols);
        for (const TaskSnapshot& task : capture.snapshot.tasks)
            for (const ThreadSnapshot& thread : task.threads) {
                Sample sample;
                const auto stack = stacks.whole_stack(task, thread);
                for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame)
                    sample.push_back(index(frame->name(), file(*frame, stacks)));
                take(task, thread, std::move(sample));
            }
    }

    void write(const std::vector<std::string>& problems, TextSink& sink) const {
        JsonEmitter json(sink, 0);
        json.begin_object();
        json.text("$schema", "https://www.speedscope.app/file-format-schema.json");
        json.text("exporter", "stackshot");
        std::string title = problems.empty() ? "stackshot" : "INCOMPLETE stackshot";
        for (const std::string& problem : problems)
            title += "; " + problem;
        json.text("name", title);
        json.number("activeProfileIndex", 0);
        json.key("shared");
        json.begin_object();
        json.key("frames");
        json.begin_array();
        for (const auto& [name, file] : frames_) {
            json.begin_object();
            json.text("name", name);
            if (!file.empty())
                json.text("file", file);
            json.end_object();
        }
        json.end_array();
        json.end_object();
        json.key("profiles");
        json.begin_array();
        write(json, merged_);
        for (const ThreadProfile& thread : threads_)
            write(json, thread);
        json.end_array();
        json.end_object();
        json.line_feed();
    }

  private:
    /// Where a frame is; for what has no source, the image that other tools find its name in.
    static std::string file(const StackFrame& frame, const Stacks& stacks) {
        if (!frame.file.empty() || !frame.image)
            return frame.file;
        return uuid_text(stacks.images().all()[*frame.image].info.uuid);
    }

    std::uint64_t index(const std::string& name, const std::string& file) {
        const auto [found, is_new] = indices_.try_emplace({name, file}, frames_.size());
        if (is_new)
            frames_.emplace_back(name, file);
        return found->second;
    }

    void take(const TaskSnapshot& task, const ThreadSnapshot& thread, Sample sample) {
        const auto [found, is_new] =
            thread_indices_.try_emplace({task.unique_pid, thread.id}, threads_.size());
        if (is_new)
            threads_.push_back({task_title(task) + ", " + thread_title(thread)});
        Sample& whole = merged_.samples.emplace_back();
        whole = {index(task_title(task), ""), index(thread_title(thread), "")};
        whole.insert(whole.end(), sample.begin(), sample.end());
        threads_[found->second].samples.push_back(std::move(sample));
    }

    static void write(JsonEmitter& json, const ThreadProfile& profile) {
        json.begin_object();
        json.text("type", "sampled");
        json.text("name", profile.name);
        json.text("unit", "none");
        json.number("startValue", 0);
        json.number("endValue", profile.samples.size());
        json.key("samples");
        json.begin_array();
        for (const Sample& sample : profile.samples) {
            json.begin_array();
            for (const std::uint64_t frame : sample)
                json.value(frame);
            json.end_array();
        }
        json.end_array();
        json.key("weights");
        json.begin_array();
        for (std::size_t i = 0; i < profile.samples.size(); ++i)
            json.value(std::uint64_t{1});
        json.end_array();
        json.end_object();
    }

    std::vector<std::pair<std::string, std::string>> frames_{};
    std::map<std::pair<std::string, std::string>, std::uint64_t> indices_{};
    ThreadProfile merged_{"all threads"};
    std::vector<ThreadProfile> threads_{};
    /// By unique pid and thread id.
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> thread_indices_{};
};

}  // namespace

void write_speedscope(std::span<const ExportedCapture> captures, TextSink& sink) {
    Profiles profiles;
    for (const ExportedCapture& capture : captures)
        profiles.take(capture);
    profiles.write(problems_of(captures), sink);
}

}  // namespace tools
