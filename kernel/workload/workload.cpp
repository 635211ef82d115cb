#include "kernel/workload/workload.hpp"

#include <array>
#include <cstdarg>
#include <string_view>

#include "kernel/absolute_time.hpp"
#include "kernel/console.hpp"
#include "kernel/format_text.hpp"
#include "kernel/page_allocator.hpp"
#include "kernel/panic.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/workload/scene.hpp"

namespace kernel {

using namespace kcdata;

namespace {

void start_nothing(const workload::Size&) {}

/// Objects of which there is one set, so that they are put to use once.
enum Objects : std::uint32_t {
    none = 0,
    daemons = 1 << 0,
    kinds = 1 << 1,
    deadlock2 = 1 << 2,
    deadlock_ring = 1 << 3,
    priority_inversion = 1 << 4,
    port_cycle = 1 << 5,
    lock_convoy = 1 << 6,
    reader_starvation = 1 << 7,
    lost_wakeup = 1 << 8,
    services = 1 << 9,
    storm = daemons | deadlock_ring | port_cycle | lock_convoy | reader_starvation | lost_wakeup,
};

struct Workload {
    std::string_view name;
    void (*start)(const workload::Size&);
    std::uint32_t objects;
    kern_return (*stop)();  ///< null: it stays for good
};
// The first one is the default.
constexpr std::array workloads = {
    Workload{"daemons", workload::start_daemons, daemons, nullptr},
    Workload{"fleet", workload::start_fleet, none, workload::stop_fleet},
    Workload{"kinds", workload::start_kinds, kinds, nullptr},
    Workload{"deadlock2", workload::start_deadlock2, deadlock2, nullptr},
    Workload{"deadlock-ring", workload::start_deadlock_ring, deadlock_ring, nullptr},
    Workload{"priority-inversion", workload::start_priority_inversion, priority_inversion, nullptr},
    Workload{"port-cycle", workload::start_port_cycle, port_cycle, nullptr},
    Workload{"lock-convoy", workload::start_lock_convoy, lock_convoy, nullptr},
    Workload{"reader-starvation", workload::start_reader_starvation, reader_starvation, nullptr},
    Workload{"lost-wakeup", workload::start_lost_wakeup, lost_wakeup, nullptr},
    Workload{"runaway", workload::start_runaway, none, nullptr},
    Workload{"deep-recursion", workload::start_deep_recursion, none, nullptr},
    Workload{"churn", workload::start_churn, none, nullptr},
    Workload{"storm", workload::start_storm, storm, nullptr},
    Workload{"services", workload::start_services, services, nullptr},

    Workload{"idle", start_nothing, none, nullptr},
};

/// Objects that are in use.
constinit std::uint32_t used_objects = 0;

const Workload* find_workload(std::string_view name) {
    for (const Workload& known : workloads)
        if (known.name == name)
            return &known;
    return nullptr;
}

workload::Size read_size(BootArguments& arguments) {
    workload::Size size;
    size.tasks = static_cast<std::uint32_t>(arguments.number("tasks", 0, 0, 10'000));
    size.threads = static_cast<std::uint32_t>(arguments.number("threads", 0, 0, 10'000));
    size.depth = static_cast<std::uint32_t>(arguments.number("depth", 0, 0, workload::max_depth));
    const std::uint64_t now = machine::absolute_time();
    size.seed = arguments.number("seed", now != 0 ? now : 1, 1);
    return size;
}

void start(const Workload& chosen, const workload::Size& size) {
    used_objects |= chosen.objects;
    chosen.start(size);
    console::print("workload %.*s: %zu tasks, %zu threads\n", static_cast<int>(chosen.name.size()),
                   chosen.name.data(), task_count(), thread_count());
}

/// Whether the threads of a workload so large leave half of the free memory to others.
bool has_room(const workload::Size& size) {
    // Stack, thread, and its share of a task; where the size does not say, there are few.
    constexpr std::uint64_t bytes_of_thread = 24 << 10;
    constexpr std::uint64_t few = 16;
    const std::uint64_t threads = (size.tasks != 0 ? size.tasks : few) *
                                  std::uint64_t{size.threads != 0 ? size.threads : few};
    return threads * bytes_of_thread <= page_allocator().free_pages() * page_size / 2;
}

/// Whether an argument of the request being made could not be used.
constinit bool complained = false;

void note_complaint(std::string_view key, std::string_view value, const char* why) {
    complained = true;
    console::print("workload argument %.*s=%.*s: %s\n", static_cast<int>(key.size()), key.data(),
                   static_cast<int>(value.size()), value.data(), why);
}

}  // namespace

void start_workload(BootArguments& arguments) {
    const Workload& chosen = arguments.entry("workload", workloads);
    const workload::Size size = read_size(arguments);
    if (const auto name = arguments.find("workload"); name && *name != chosen.name)
        for (const Workload& known : workloads)
            console::print("workload=%.*s\n", static_cast<int>(known.name.size()),
                           known.name.data());
    start(chosen, size);
}

kern_return run_workload(std::string_view request) {
    const std::string_view name = request.substr(0, request.find(' '));
    const Workload* const chosen = find_workload(name);
    if (chosen == nullptr)
        return KERN_INVALID_NAME;
    complained = false;
    BootArguments arguments(request.substr(name.size()), note_complaint);
    const workload::Size size = read_size(arguments);
    arguments.complain_of_unused();
    if (complained)
        return KERN_INVALID_ARGUMENT;
    if ((used_objects & chosen->objects) != 0)
        return KERN_ALREADY_IN_SET;
    if (!has_room(size))
        return KERN_RESOURCE_SHORTAGE;
    start(*chosen, size);
    return KERN_SUCCESS;
}

kern_return stop_workload(std::string_view name) {
    const Workload* const chosen = find_workload(name);
    if (chosen == nullptr)
        return KERN_INVALID_NAME;
    return chosen->stop != nullptr ? chosen->stop() : KERN_NOT_SUPPORTED;
}

namespace workload {

Task& make_task(const char* name, std::uint64_t flags, Coalition* coalition) {
    auto task = task_create(name, flags, coalition);
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
