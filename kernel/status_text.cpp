#include "kernel/status_text.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <iterator>

#include "kernel/absolute_time.hpp"
#include "kernel/page_allocator.hpp"
#include "kernel/pl011_driver.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/stackshot_call.hpp"
#include "kernel/task.hpp"

namespace kernel {
namespace {

/// What a line tells of a task.
struct TaskLine {
    std::uint64_t unique_pid = 0;
    std::int32_t pid = 0;
    std::uint32_t threads = 0;
    std::uint32_t runnable = 0;
    std::uint64_t time = 0;  ///< absolute time units
    char name[Task::max_name + 1] = {};
};

TaskLine line_of(const Task& task) {
    TaskLine line{.unique_pid = task.unique_pid,
                  .pid = task.pid,
                  .threads = task.live_thread_count,
                  .time = task.system_time_in_terminated_threads};
    std::memcpy(line.name, task.name, sizeof(line.name));
    for (const Thread* thread = task.threads.first(); thread != nullptr;
         thread = ThreadList::next(*thread)) {
        line.time += thread->system_time;
        if ((thread->state & (SS_TH_RUN | SS_TH_IDLE)) == SS_TH_RUN)
            line.runnable++;
    }
    return line;
}

/// The tasks behind the one with `unique_pid`, a few at a time so that the lock is not held for
/// long; a unique pid says where in the list a task that is gone was.
std::size_t tasks_behind(std::uint64_t unique_pid, bool from_start, std::span<TaskLine> lines) {
    std::size_t count = 0;
    SchedulerGuard guard;
    for (const Task* task = task_list().first(); task != nullptr && count < lines.size();
         task = TaskList::next(*task))
        if (from_start || task->unique_pid > unique_pid)
            lines[count++] = line_of(*task);
    return count;
}

}  // namespace

void write_tasks(TextSink& sink) {
    put_text(sink, "  PID THREADS RUNNABLE     TIME-MS NAME\n");
    std::array<TaskLine, 8> lines;
    std::uint64_t last = 0;
    for (bool from_start = true;; from_start = false) {
        const std::size_t count = tasks_behind(last, from_start, lines);
        for (const TaskLine& line : std::span(lines).first(count)) {
            put_text(sink, "%5d %7u %8u %11lu %s\n", line.pid, line.threads, line.runnable,
                     absolute_time_to_microseconds(line.time) / 1000, line.name);
            last = line.unique_pid;
        }
        if (count < lines.size())
            return;
    }
}

void write_statistics(TextSink& sink) {
    const auto number = [&sink](const char* name, std::uint64_t value) {
        put_text(sink, "%s %lu\n", name, value);
    };
    number("uptime", absolute_time_to_microseconds(machine::absolute_time()));
    number("cpus", static_cast<std::uint64_t>(std::popcount(machine::online_cpus())));
    number("tasks", task_count());
    number("threads", thread_count());
    number("memory_total", page_allocator().total_pages() * page_size);
    number("memory_free", page_allocator().free_pages() * page_size);

    const auto subsystem = stackshot_subsystem().statistics();
    number("stackshot_count", subsystem.count);
    number("stackshot_duration", absolute_time_to_microseconds(subsystem.duration));
    number("stackshot_interrupts_overdue", subsystem.overdue);
    const auto last = stackshot_subsystem().last_capture();
    number("last_stackshot_tasks", last.tasks);
    number("last_stackshot_threads", last.threads);
    number("last_stackshot_frames", last.frames);
    number("last_stackshot_tries", last.tries);
    number("last_stackshot_prepare", absolute_time_to_microseconds(last.prepare_time));
    number("last_stackshot_trap", absolute_time_to_microseconds(last.trap_time));
    number("last_stackshot_interrupts_off", absolute_time_to_microseconds(last.interrupts_off));
    number("last_stackshot_assemble", absolute_time_to_microseconds(last.assemble_time));

    const auto received = pl011_driver::receive_statistics();
    number("uart_baud", pl011_driver::baud());
    number("uart_received", received.bytes);
    number("uart_overruns", received.overruns);
    number("uart_framing_errors", received.framing_errors);
    number("uart_parity_errors", received.parity_errors);
    number("uart_breaks", received.breaks);
    number("uart_held_back", received.held_back);
}

}  // namespace kernel
