#include "tools/snapshot_json.hpp"

#include <optional>
#include <string_view>

#include "kcdata/records.hpp"
#include "tools/snapshot_text.hpp"
#include "tools/wait_text.hpp"

namespace tools {

namespace {

template <typename Number>
void write(JsonEmitter& json, std::string_view key, const std::optional<Number>& number) {
    if (!number)
        return;
    json.key(key);
    if constexpr (std::is_signed_v<Number>)
        json.value(static_cast<std::int64_t>(*number));
    else
        write_id(json, *number);
}

void write_if(JsonEmitter& json, std::string_view key, bool truth) {
    if (truth)
        json.truth(key, true);
}

void write_wait(JsonEmitter& json, const WaitGraph& graph, const WaitGraph::Wait& wait) {
    json.key("wait");
    json.begin_object();
    json.text("text", wait_text(graph, wait));
    json.text("chain", chain_text(graph, wait));
    if (wait.blocker == WaitGraph::Blocker::thread) {
        json.key("thread");
        write_id(json, graph.threads[wait.blocked_by].id);
    }
    json.end_object();
}

}  // namespace

void write_id(JsonEmitter& json, std::uint64_t id) {
    constexpr std::uint64_t exact_in_double = std::uint64_t{1} << 53;
    if (id <= exact_in_double)
        json.value(id);
    else
        json.hexadecimal(id);
}

void write_task_keys(JsonEmitter& json, const TaskSnapshot& task) {
    json.key("unique_pid");
    write_id(json, task.unique_pid);
    write(json, "pid", task.pid);
    json.text("name", task.name);
}

void write_thread_keys(JsonEmitter& json, const ThreadSnapshot& thread, const WaitGraph& graph) {
    json.key("id");
    write_id(json, thread.id);
    if (!thread.name.empty())
        json.text("name", thread.name);
    if (thread.state) {
        json.key("state");
        json.begin_array();
        for (const char* const name : state_names(*thread.state))
            json.value(name);
        json.end_array();
    }
    write_if(json, "on_core", thread.has(kcdata::kThreadOnCore));
    write(json, "cpu", thread.last_processor);
    write(json, "sched_priority", thread.sched_priority);
    write(json, "base_priority", thread.base_priority);
    write(json, "user_usec", thread.user_usec);
    write(json, "system_usec", thread.system_usec);
    write(json, "runnable_usec", thread.runnable_usec);
    if (!thread.dispatch_queue_label.empty())
        json.text("dispatch_queue", thread.dispatch_queue_label);
    write_if(json, "unchanged", thread.unchanged);
    const std::size_t index = graph.find_thread(thread.id);
    if (index != WaitGraph::none && graph.wait_of(index) != nullptr)
        write_wait(json, graph, *graph.wait_of(index));
}

void write_stack(JsonEmitter& json, std::span<const StackFrame> frames, const Images& images) {
    json.begin_array();
    for (const StackFrame& frame : frames) {
        json.begin_object();
        json.key("address");
        json.hexadecimal(frame.address);
        if (!frame.function.empty())
            json.text("function", frame.function);
        if (!frame.file.empty())
            json.text("file", frame.file);
        if (frame.line != 0)
            write(json, "line", std::optional(frame.line));
        write_if(json, "inlined", frame.inlined);
        write_if(json, "user", frame.user);
        if (frame.image) {
            const LoadInfo& image = images.all()[*frame.image].info;
            json.key("image");
            json.begin_object();
            json.text("uuid", uuid_text(image.uuid));
            json.key("load_address");
            json.hexadecimal(image.address);
            json.key("offset");
            json.hexadecimal(frame.address - image.address);
            json.end_object();
        }
        json.end_object();
    }
    json.end_array();
}

}  // namespace tools
