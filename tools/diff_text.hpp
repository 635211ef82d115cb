#pragma once

#include <string>

#include "tools/diff.hpp"
#include "tools/export/export.hpp"
#include "tools/json_emitter.hpp"

namespace tools {

/// For people: what is new, gone, moved and stuck, in this order. `before` and `after` are what the
/// diff is of.
std::string diff_text(const Diff& diff, const ExportedCapture& before,
                      const ExportedCapture& after);

/// For programs: {"before", "after", "interval_ns", "complete", "new_tasks", "gone_tasks",
/// "threads": [{"task", "change", "used_user_usec", "used_system_usec", "ran", "before",
/// "after"}]}. Tasks, and a thread in each capture with its stack, are as snapshot_json.hpp writes
/// them.
void write_diff(const Diff& diff, const ExportedCapture& before, const ExportedCapture& after,
                JsonEmitter& json);

}  // namespace tools
