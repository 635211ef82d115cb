#include <fmt/core.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tools/export/export.hpp"
#include "tools/printable.hpp"
#include "tools/snapshot_text.hpp"
#include "tools/stacks.hpp"

// The format of Brendan Gregg's stackcollapse scripts, which flamegraph.pl, speedscope and others
// read: the frames of a stack, outermost first, between semicolons; a blank; how often it was seen.

namespace tools {

namespace {

/// `text` as one frame: neither a semicolon nor a line feed may stand in it. The count is what
/// follows the last blank, so blanks may.
std::string frame_text(std::string_view text) {
    std::string frame = printable(text);
    for (char& c : frame)
        if (c == ';')
            c = ':';
    return frame;
}

}  // namespace

void write_folded(std::span<const ExportedCapture> captures, TextSink& sink) {
    std::map<std::string, std::uint64_t> counts;
    for (const ExportedCapture& capture : captures) {
        const Stacks stacks(capture.snapshot, capture.symbols);
        for (const TaskSnapshot& task : capture.snapshot.tasks)
            for (const ThreadSnapshot& thread : task.threads) {
                std::string line =
                    frame_text(task_title(task)) + ';' + frame_text(thread_title(thread));
                const auto frames = stacks.whole_stack(task, thread);
                for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
                    line += ';' + frame_text(frame->name());
                ++counts[line];
            }
    }
    for (const auto& [line, count] : counts)
        sink.write(fmt::format("{} {}\n", line, count));
}

}  // namespace tools
