#include <optional>
#include <string_view>

#include "tools/export/export.hpp"
#include "tools/json_emitter.hpp"
#include "tools/snapshot_json.hpp"
#include "tools/snapshot_text.hpp"
#include "tools/stacks.hpp"
#include "tools/wait_graph.hpp"

// What the report for people tells, as data: {"captures": [{"place", "os_version", "boot_args",
// "kernel", "absolute_time", "usecs_since_epoch", "nanoseconds_stopped", "symbols", "problems",
// "tasks": [{..., "threads": [{..., "stack"}]}]}]}. The parts are those of snapshot_json.hpp.

namespace tools {

namespace {

void write(JsonEmitter& json, std::string_view key, const std::optional<std::string>& text) {
    if (!text)
        return;
    json.key(key);
    json.value(*text);
}

void write(JsonEmitter& json, std::string_view key, const std::optional<std::uint64_t>& number) {
    if (!number)
        return;
    json.key(key);
    write_id(json, *number);
}

void write_task(JsonEmitter& json, const TaskSnapshot& task, const Stacks& stacks,
                const WaitGraph& graph) {
    json.begin_object();
    write_task_keys(json, task);
    json.key("threads");
    json.begin_array();
    for (const ThreadSnapshot& thread : task.threads) {
        json.begin_object();
        write_thread_keys(json, thread, graph);
        if (thread.kernel_stack || thread.user_stack) {
            json.key("stack");
            write_stack(json, stacks.whole_stack(task, thread), stacks.images());
        }
        json.end_object();
    }
    for (const ThreadSnapshot& thread : task.unchanged_threads) {
        json.begin_object();
        write_thread_keys(json, thread, graph);
        json.key("unchanged");
        json.boolean(true);
        json.end_object();
    }
    json.end_array();
    json.end_object();
}

void write_capture(JsonEmitter& json, const ExportedCapture& capture) {
    const Snapshot& snapshot = capture.snapshot;
    const Stacks stacks(snapshot, capture.symbols);
    const WaitGraph graph = make_wait_graph(snapshot);
    json.begin_object();
    write(json, "place", std::optional(capture.place));
    write(json, "os_version", snapshot.os_version);
    write(json, "boot_args", snapshot.boot_args);
    if (snapshot.kernel) {
        json.key("kernel");
        json.begin_object();
        json.key("address");
        json.hexadecimal(snapshot.kernel->address);
        write(json, "uuid", std::optional(uuid_text(snapshot.kernel->uuid)));
        json.end_object();
    }
    write(json, "absolute_time", snapshot.absolute_time);
    write(json, "usecs_since_epoch", snapshot.usecs_since_epoch);
    if (const auto stopped = snapshot.nanoseconds(snapshot.duration)) {
        json.key("nanoseconds_stopped");
        json.value(*stopped);
    }
    if (!capture.symbols_from.empty())
        write(json, "symbols", std::optional(capture.symbols_from));
    json.key("problems");
    json.begin_array();
    for (const auto* problems : {&capture.problems, &snapshot.problems})
        for (const std::string& problem : *problems)
            json.value(problem);
    json.end_array();
    json.key("tasks");
    json.begin_array();
    for (const TaskSnapshot& task : snapshot.tasks)
        write_task(json, task, stacks, graph);
    json.end_array();
    json.end_object();
}

}  // namespace

void write_json(std::span<const ExportedCapture> captures, TextSink& sink) {
    JsonEmitter json(sink);
    json.begin_object();
    json.key("captures");
    json.begin_array();
    for (const ExportedCapture& capture : captures)
        write_capture(json, capture);
    json.end_array();
    json.end_object();
    json.line_feed();
}

}  // namespace tools
