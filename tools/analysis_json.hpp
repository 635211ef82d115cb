#pragma once

#include "tools/analyze.hpp"
#include "tools/json_emitter.hpp"

namespace tools {

/// Writes a wait graph and its diagnosis as one JSON document. Thread ids, pids and priorities are
/// numbers; addresses and owners "0x..." strings; names are as in the capture; *_text and lines of
/// "unknown" are for people and may change, the rest does not but grow.
///
///     {"deadlocks": [{"threads": [ID, ...], "behind": COUNT}],
///      "open_cycles": [{"threads": [ID, ...], "may_act": [ID, ...]}],
///      "heads": [{"kind": "thread", "id": ID, | "kind": "task", "pid": PID, |
///                 "kind": "work_queue", "address": "0x...",
///                 "direct": [ID, ...], "behind": COUNT}],
///      "inversions": [{"owner": ID, "waiter": ID, "direct": BOOLEAN,
///                      "boost": "none" | "partial" | "full" | "unknown", "runnable": BOOLEAN}],
///      "threads": [{"id": ID, "name": TEXT, "in_capture": BOOLEAN, "pid": PID, "state": "0x...",
///                   "on_core": BOOLEAN, "base_priority": N, "sched_priority": N,
///                   "deadlock": INDEX, "activity_text": TEXT, "wait": WAIT}],
///      "tasks": [{"pid": PID, "name": TEXT, "in_capture": BOOLEAN}],
///      "unknown": [TEXT, ...], "complete": BOOLEAN}
///
/// WAIT: {"type": kThreadWait... or "0x..", "object": {"kind": TEXT, "address": "0x...",
///        "label": TEXT}, "owner": "0x...", "blocker": "none" | "thread" | "task" | "creator" |
///        "work_queue" | "port", "blocker_thread": ID | "blocker_pid": PID |
///        "blocker_address": "0x...", "by_turnstile": BOOLEAN, "any_of_task": BOOLEAN, "changing":
///        BOOLEAN, "unknown": TEXT, "turnstile": {"flags": "0x...", "context": "0x...", "hops": N,
///        "priority": N}}
///
/// Threads and tasks are those that wait or are waited for. What is not known, or is not there, has
/// no key. In "deadlocks" each thread waits for the next, the last for the first, unless a task is
/// between.
void write_analysis(const WaitGraph& graph, const Diagnosis& diagnosis, JsonEmitter& json);

}  // namespace tools
