#pragma once

#include "tools/export/export.hpp"
#include "tools/json_emitter.hpp"

namespace tools {

/// Writes what the page (tools/export/page/) shows of one capture as one JSON object.
///
/// Threads are "threads"[i] and tasks "tasks"[i]: everything else refers to them by that index, and
/// to "frames", "images", "objects" and "queues" in the same way. Threads and tasks that waits name
/// but the capture lacks are there too, as "absent". Ids, addresses and times in ticks are strings,
/// as numbers of JavaScript are exact to 53 bits only; spans of time are nanoseconds. Names are as
/// in the capture. What is not known has no key.
void write_page_data(const ExportedCapture& capture, JsonEmitter& json);

}  // namespace tools
