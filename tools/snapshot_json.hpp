#pragma once

#include <cstdint>
#include <span>

#include "tools/json_emitter.hpp"
#include "tools/snapshot.hpp"
#include "tools/stacks.hpp"
#include "tools/wait_graph.hpp"

namespace tools {

// Parts of a snapshot in JSON for programs and browsers: addresses are strings "0x...", and so are
// ids that a double does not hold. What is not known has no key.

/// A number; a string "0x..." beyond 2^53.
void write_id(JsonEmitter& json, std::uint64_t id);
/// {"unique_pid", "pid", "name"}, without the braces.
void write_task_keys(JsonEmitter& json, const TaskSnapshot& task);
/// {"id", "name", "state", "on_core", "cpu", "sched_priority", "base_priority", "user_usec",
/// "system_usec", "runnable_usec", "dispatch_queue", "unchanged", "wait"}, without the braces.
/// "state" is a list of TH_*; "wait" has "text", "chain" and, if a thread is waited for, "thread".
void write_thread_keys(JsonEmitter& json, const ThreadSnapshot& thread, const WaitGraph& graph);
/// A list of {"address", "function", "file", "line", "inlined", "user", "image"}, innermost first.
/// "image" has "uuid", "load_address" and "offset".
void write_stack(JsonEmitter& json, std::span<const StackFrame> frames, const Images& images);

}  // namespace tools
