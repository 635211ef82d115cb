#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/records.hpp"
#include "kcdata/writer.hpp"
#include "stackshot/latency.hpp"
#include "stackshot/port_label.hpp"
#include "stackshot/request.hpp"
#include "stackshot/wait_log.hpp"

namespace stackshot {

/// What became of a task, or a part of it.
struct RecordedTask {
    /// False: the request does not want it, and nothing was appended.
    bool wanted = false;
    std::uint64_t unique_pid = 0;
    TaskLatency latency{};
    WaitLog::Range waits{};
    std::size_t label_mentions = 0;  ///< of port labels, in the waits
    /// Of the part with the task's first thread.
    std::span<const std::int32_t> donating_pids{};
};

/// What the records behind a task's threads tell of all its parts.
struct TaskEnd {
    std::uint64_t unique_pid = 0;
    TaskLatency latency{};
    std::size_t waits = 0;
    std::size_t label_mentions = 0;
    std::span<const std::int32_t> donating_pids{};

    void add(const RecordedTask& part) {
        unique_pid = part.unique_pid;
        latency += part.latency;
        waits += part.waits.count;
        label_mentions += part.label_mentions;
        if (!part.donating_pids.empty())
            donating_pids = part.donating_pids;
    }
};

/// Bytes record_task_end appends at most.
std::size_t record_task_end_room(const TaskEnd& end);

/// The arrays of a task's waiting threads, for the elements to be copied into.
class WaitArrays {
  public:
    /// Appends them with room for `count` threads; none for 0.
    kcdata::kern_return place(kcdata::Writer& writer, std::size_t count);
    /// No more than there is room for. `labels` gives their port labels ids.
    void add(const WaitLog::Range& waits, PortLabelTable& labels);

  private:
    std::span<kcdata::stackshot_thread_waitinfo_v2> wait_infos_{};
    std::span<kcdata::stackshot_thread_turnstileinfo_v2> turnstile_infos_{};
    std::size_t filled_ = 0;
};
kcdata::kern_return record_donating_pids(kcdata::Writer& writer, const TaskEnd& end);
kcdata::kern_return record_task_latency(kcdata::Writer& writer, const TaskEnd& end);

/// Appends what stands behind the threads of a task, and ends it. It is of all its parts, and so
/// recorded when all of them are there: `for_each_part` calls the function it is given with each,
/// in order. `labels`: of the whole capture, whose tasks end in order. Any context.
template <typename ForEachPart>
kcdata::kern_return record_task_end(kcdata::Writer& writer, const Request& request,
                                    PortLabelTable& labels, ForEachPart for_each_part) {
    TaskEnd end;
    for_each_part([&end](const RecordedTask& part) { end.add(part); });
    WaitArrays waits;
    if (const kcdata::kern_return error = waits.place(writer, end.waits);
        error != kcdata::KERN_SUCCESS)
        return error;
    labels.begin_task();
    for_each_part([&](const RecordedTask& part) { waits.add(part.waits, labels); });
    if (const kcdata::kern_return error = labels.append_mentioned(writer);
        error != kcdata::KERN_SUCCESS)
        return error;
    if (const kcdata::kern_return error = record_donating_pids(writer, end);
        error != kcdata::KERN_SUCCESS)
        return error;
    if (request.wants_latencies()) {
        if (const kcdata::kern_return error = record_task_latency(writer, end);
            error != kcdata::KERN_SUCCESS)
            return error;
    }
    return writer.container_end(end.unique_pid);
}

}  // namespace stackshot
