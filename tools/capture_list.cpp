#include "tools/capture_list.hpp"

#include <utility>

#include "tools/delta.hpp"
#include "tools/snapshot_text.hpp"

namespace tools {

std::optional<Failure> CaptureList::add(const InputOptions& file, std::optional<unsigned> only) {
    return add(file.open(), file, only);
}

std::optional<Failure> CaptureList::add(std::vector<std::byte> bytes, const std::string& name) {
    return add(Input::of(std::move(bytes), name), {.file = name});
}

std::optional<Failure> CaptureList::add(Expected<Input> opened, const InputOptions& file,
                                        std::optional<unsigned> only) {
    if (!opened.ok())
        return opened.failure();
    const Input& input = inputs_.emplace_back(std::move(opened.value()));
    for (const std::string& text : input.problems())
        say("{}: {}", file.file, text);
    damaged_ |= !input.problems().empty();
    const std::size_t count = input.buffers().size();
    if (only && *only > count)
        return Failure{fmt::format("{} has {}: there is no number {}", file.file,
                                   plural(count, "buffer"), *only),
                       exit_usage};
    for (std::size_t i = 0; i < count; ++i)
        if (!only || *only == i + 1)
            add({.place = file.place(input, i),
                 .buffer = input.buffers()[i].bytes,
                 .problems = input.problems()});
    return std::nullopt;
}

void CaptureList::add(ExportedCapture capture) {
    const std::string& place = capture.place;
    Snapshot& snapshot = capture.snapshot = read_snapshot(capture.buffer);
    for (const std::string& problem : snapshot.problems)
        say("{}: {}", place, problem);
    damaged_ |= !snapshot.problems.empty();
    salvaged_ |= snapshot.problems.empty() || !snapshot.tasks.empty();
    if (snapshot.delta && captures_.empty())
        say("{}: a delta without the capture before it: of what has not run since, there is no "
            "stack",
            place);
    else if (snapshot.delta)
        if (const std::string problem = complete_delta(snapshot, captures_.back().snapshot);
            !problem.empty())
            say("{}: {}", place, problem);
    capture.symbols = symbols_.of(snapshot, place);
    if (capture.symbols != nullptr)
        capture.symbols_from = symbols_.file();
    captures_.push_back(std::move(capture));
}

ExitStatus CaptureList::status() const {
    if (!salvaged_)
        return exit_failure;
    if (damaged_)
        return exit_damaged;
    return symbols_.wrong() ? exit_wrong_symbols : exit_complete;
}

}  // namespace tools
