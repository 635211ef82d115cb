#include <iterator>

#include "tools/export/export.hpp"

namespace tools {

namespace {

constexpr ExportFormat formats[] = {
    {"html", "one page for a browser, with everything in it", write_html},
    {"json", "what the text tells, for programs", write_json},
    {"tree", "a tree of calls for each thread, with counts, for people", write_tree},
    {"folded", "a line for each stack with its count, for flame graphs", write_folded},
    {"speedscope", "a profile of all threads and one of each, for speedscope.app",
     write_speedscope},
    {"perfetto", "Chrome's trace events, for ui.perfetto.dev: CPUs collecting, stacks, waits",
     write_perfetto},
    {"ips", "Apple's stackshot report (bug type 288), of one capture", write_ips, true},
};

}  // namespace

std::vector<std::string> problems_of(std::span<const ExportedCapture> captures) {
    std::vector<std::string> problems;
    for (const ExportedCapture& capture : captures)
        for (const auto* list : {&capture.problems, &capture.snapshot.problems})
            for (const std::string& problem : *list)
                problems.push_back(capture.place + ": " + problem);
    return problems;
}

std::span<const ExportFormat> export_formats() {
    return formats;
}

const ExportFormat* find_export_format(const std::string& name) {
    for (const ExportFormat& format : formats)
        if (format.name == name)
            return &format;
    return nullptr;
}

}  // namespace tools
