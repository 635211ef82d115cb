#include "tools/delta.hpp"

#include <fmt/core.h>

#include <unordered_map>
#include <utility>

#include "tools/snapshot_text.hpp"

namespace tools {

namespace {

class Completion {
  public:
    Completion(Snapshot& delta, const Snapshot& base) : delta_(delta) {
        for (const TaskSnapshot& task : base.tasks) {
            tasks_.emplace(task.unique_pid, &task);
            for (const ThreadSnapshot& thread : task.threads)
                threads_.emplace(thread.id, &thread);
        }
    }

    std::string run() {
        for (TaskSnapshot& task : delta_.tasks)
            complete(task);
        if (missing_ == 0)
            return {};
        return fmt::format("{} not in the capture before, and not run yet: nameless, without stack",
                           missing_ == 1 ? "1 thread is" : fmt::format("{} threads are", missing_));
    }

  private:
    void complete(TaskSnapshot& task) {
        if (task.unchanged)
            if (const auto found = tasks_.find(task.unique_pid); found != tasks_.end()) {
                const TaskSnapshot& base = *found->second;
                task.pid = base.pid;
                task.name = base.name;
                task.record = base.record;
                task.images = base.images;
                task.text_exec_images = base.text_exec_images;
                task.shared_cache = base.shared_cache;
            }
        for (ThreadSnapshot& thread : task.unchanged_threads)
            complete(task, thread);
        task.unchanged_threads.clear();
    }

    void complete(TaskSnapshot& task, const ThreadSnapshot& thread) {
        const auto found = threads_.find(thread.id);
        // One that was made in between, and has not run, is no more than told of either.
        missing_ += found == threads_.end();
        ThreadSnapshot& whole =
            task.threads.emplace_back(found != threads_.end() ? *found->second : ThreadSnapshot());
        whole.id = thread.id;
        whole.unchanged = true;
        whole.latency.reset();
        // What a delta tells of such a thread.
        whole.ss_flags = thread.ss_flags;
        whole.last_made_runnable_time = thread.last_made_runnable_time;
        whole.state = thread.state;
        whole.base_priority = thread.base_priority;
        whole.sched_priority = thread.sched_priority;
    }

    Snapshot& delta_;
    std::unordered_map<std::uint64_t, const TaskSnapshot*> tasks_{};
    std::unordered_map<std::uint64_t, const ThreadSnapshot*> threads_{};
    std::uint64_t missing_ = 0;
};

}  // namespace

std::string complete_delta(Snapshot& delta, const Snapshot& base) {
    if (!delta.delta)
        return {};
    if (!delta.delta_since || !base.absolute_time)
        return "the delta cannot be completed: when it or the capture before is from is not known";
    if (*base.absolute_time < *delta.delta_since)
        return fmt::format(
            "the delta goes on from {}, the capture before is from {}: it cannot be completed",
            *delta.delta_since, *base.absolute_time);
    // What does not change is in none but the first.
    const auto inherit = [&](auto Snapshot::*fact) {
        if (!(delta.*fact))
            delta.*fact = base.*fact;
    };
    inherit(&Snapshot::os_version);
    inherit(&Snapshot::os_build_version);
    inherit(&Snapshot::boot_args);
    inherit(&Snapshot::page_size);
    inherit(&Snapshot::timebase);
    inherit(&Snapshot::kernel);
    inherit(&Snapshot::shared_cache);
    if (delta.shared_cache_images.empty())
        delta.shared_cache_images = base.shared_cache_images;
    return Completion(delta, base).run();
}

}  // namespace tools
