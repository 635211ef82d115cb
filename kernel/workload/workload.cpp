#include "kernel/workload/workload.hpp"

#include <array>
#include <cstdarg>
#include <string_view>

#include "kernel/absolute_time.hpp"
#include "kernel/console.hpp"
#include "kernel/format_text.hpp"
#include "kernel/panic.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/workload/scene.hpp"

namespace kernel {
namespace {

void start_nothing(const workload::Size&) {}

struct Workload {
    std::string_view name;
    void (*start)(const workload::Size&);
};
// The first one is the default.
constexpr std::array workloads = {
    Workload{"daemons", workload::start_daemons},
    Workload{"fleet", workload::start_fleet},
    Workload{"kinds", workload::start_kinds},
    Workload{"deadlock2", workload::start_deadlock2},
    Workload{"deadlock-ring", workload::start_deadlock_ring},
    Workload{"priority-inversion", workload::start_priority_inversion},
    Workload{"port-cycle", workload::start_port_cycle},
    Workload{"lock-convoy", workload::start_lock_convoy},
    Workload{"reader-starvation", workload::start_reader_starvation},
    Workload{"lost-wakeup", workload::start_lost_wakeup},
    Workload{"runaway", workload::start_runaway},
    Workload{"deep-recursion", workload::start_deep_recursion},
    Workload{"churn", workload::start_churn},
    Workload{"storm", workload::start_storm},

    Workload{"idle", start_nothing},
};

}  // namespace

void start_workload(BootArguments& arguments) {
    const Workload& chosen = arguments.entry("workload", workloads);
    workload::Size size;
    size.tasks = static_cast<std::uint32_t>(arguments.number("tasks", 0, 0, 10'000));
    size.threads = static_cast<std::uint32_t>(arguments.number("threads", 0, 0, 10'000));
    size.depth = static_cast<std::uint32_t>(arguments.number("depth", 0, 0, workload::max_depth));
    const std::uint64_t now = machine::absolute_time();
    size.seed = arguments.number("seed", now != 0 ? now : 1, 1);
    if (const auto name = arguments.find("workload"); name && *name != chosen.name)
        for (const Workload& known : workloads)
            console::print("workload=%.*s\n", static_cast<int>(known.name.size()),
                           known.name.data());
    chosen.start(size);
    console::print("workload %.*s: %zu tasks, %zu threads\n", static_cast<int>(chosen.name.size()),
                   chosen.name.data(), task_count(), thread_count());
}

namespace workload {

Task& make_task(const char* name, std::uint64_t flags) {
    auto task = task_create(name, flags);
    if (!task.ok())
        panic("workload: task %s: %s", name, kcdata::kern_return_name(task.error()));
    return *task.value();
}

Thread& make_thread(Task& task, ThreadEntry entry, void* argument, ThreadOptions options,
                    const char* name, ...) {
    char text[Thread::max_name + 1];
    std::va_list arguments;
    va_start(arguments, name);
    format_to_v(text, sizeof(text), name, arguments);
    va_end(arguments);
    auto thread = thread_create(task, text, entry, argument, options);
    if (!thread.ok())
        panic("workload: thread %s: %s", text, kcdata::kern_return_name(thread.error()));
    thread_start(*thread.value());
    return *thread.value();
}

std::uint64_t compute(std::uint64_t microseconds, std::uint64_t seed) {
    Random random(seed);
    std::uint64_t sum = 0;
    const std::uint64_t end =
        machine::absolute_time() + nanoseconds_to_absolute_time(microseconds * 1000);
    while (machine::absolute_time() < end)
        for (int turn = 0; turn < 200; turn++)
            sum += random.next();
    return sum;
}

}  // namespace workload
}  // namespace kernel
