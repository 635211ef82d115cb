#include "captures.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "kcdata/records.hpp"
#include "kcdata/types.hpp"
#include "kcdata/writer.hpp"

namespace tools_test {

using namespace kcdata;

namespace {

void must(kern_return result) {
    if (result != KERN_SUCCESS)
        throw std::runtime_error(kern_return_name(result));
}

void append_text(Writer& writer, std::uint32_t type, std::string_view text) {
    std::string terminated(text);
    terminated += '\0';
    must(writer.append(type, std::as_bytes(std::span(terminated))));
}

struct Thread {
    std::uint64_t id;
    std::string_view name;
    std::uint32_t state;
    std::uint64_t ss_flags;
    std::uint64_t wait_event;
    std::int16_t base_priority, sched_priority;
    int cpu;  // -1: never ran
    std::vector<std::uint64_t> stack;
    bool on_absent_cpu = false;
};

void append(Writer& writer, const Thread& thread) {
    must(writer.container_begin(STACKSHOT_KCCONTAINER_THREAD, thread.id));
    thread_snapshot_v4 snapshot{};
    snapshot.ths_thread_id = thread.id;
    snapshot.ths_wait_event = thread.wait_event;
    snapshot.ths_ss_flags = thread.ss_flags | kKernel64_p;
    snapshot.ths_state = thread.state;
    snapshot.ths_base_priority = thread.base_priority;
    snapshot.ths_sched_priority = thread.sched_priority;
    if (thread.cpu >= 0) {
        snapshot.ths_last_run_time = 900;
        snapshot.ths_last_made_runnable_time = 999;
    }
    must(writer.append_value(STACKSHOT_KCTYPE_THREAD_SNAPSHOT, snapshot));
    if (!thread.name.empty()) {
        char name[thread_name_size] = {};
        thread.name.copy(name, sizeof(name));
        must(writer.append_value(STACKSHOT_KCTYPE_THREAD_NAME, name));
    }
    must(writer.append_value(STACKSHOT_KCTYPE_CPU_TIMES,
                             stackshot_cpu_times_v2{0, 1'500, 2'000'000}));
    if (!thread.stack.empty())
        must(writer.append_array<std::uint64_t>(STACKSHOT_KCTYPE_KERN_STACKLR64, thread.stack));
    if (thread.cpu >= 0)
        must(writer.append_uint32_with_description("last_processor",
                                                   static_cast<std::uint32_t>(thread.cpu)));
    if (thread.on_absent_cpu)
        must(writer.append_uint32_with_description("on_absent_cpu", 1));
    must(writer.container_end(thread.id));
}

void begin_task(Writer& writer, std::uint64_t unique_pid, std::int32_t pid, std::string_view name) {
    must(writer.container_begin(STACKSHOT_KCCONTAINER_TASK, unique_pid));
    task_snapshot_v2 task{};
    task.ts_unique_pid = unique_pid;
    task.ts_pid = pid;
    name.copy(task.ts_p_comm, sizeof(task.ts_p_comm));
    must(writer.append_value(STACKSHOT_KCTYPE_TASK_SNAPSHOT, task));
}

}  // namespace

Bytes small_capture() {
    alignas(16) static std::byte storage[1 << 14];
    std::memset(storage, 0, sizeof(storage));
    Writer writer{storage};
    must(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT));
    must(writer.append_uint64_with_description("stackshot_in_flags", 0x10002));
    must(writer.append_value(STACKSHOT_KCTYPE_KERN_PAGE_SIZE, std::uint32_t{4096}));
    append_text(writer, STACKSHOT_KCTYPE_OSVERSION, "test-kernel 1.0");
    append_text(writer, STACKSHOT_KCTYPE_BOOTARGS, "workload=test");
    // One tick is a microsecond.
    must(writer.append_value(KCDATA_TYPE_TIMEBASE, mach_timebase_info{1000, 1}));
    must(writer.append_value(KCDATA_TYPE_MACH_ABSOLUTE_TIME, std::uint64_t{1000}));
    must(writer.append_value(KCDATA_TYPE_USECS_SINCE_EPOCH, std::uint64_t{1'700'000'000'000'042}));
    must(writer.append_uint64_with_description("stackshot_absent_cpus", 0b1000));

    begin_task(writer, 0, 0, "kernel_task");
    dyld_uuid_info_64 kernel{0xffff000000080000, {}};
    std::copy(std::begin(small_capture_uuid), std::end(small_capture_uuid), kernel.imageUUID);
    must(writer.append_value(STACKSHOT_KCTYPE_KERNELCACHE_LOADINFO, kernel));
    append(writer, {.id = 1,
                    .name = "idle #0",
                    .state = SS_TH_RUN | SS_TH_IDLE,
                    .ss_flags = kThreadOnCore,
                    .wait_event = 0,
                    .base_priority = 0,
                    .sched_priority = 0,
                    .cpu = 0,
                    .stack = {0x1000, 0x2004}});
    append(writer, {.id = 2,
                    .name = "absent",
                    .state = SS_TH_RUN,
                    .ss_flags = kThreadOnCore | kThreadTruncatedBT | kThreadTruncKernBT,
                    .wait_event = 0,
                    .base_priority = 31,
                    .sched_priority = 47,
                    .cpu = 3,
                    .stack = {0x1008},
                    .on_absent_cpu = true});
    must(writer.container_end(0));

    begin_task(writer, 7, 42, "worker");
    append(writer, {.id = 10,
                    .name = "blocked",
                    .state = SS_TH_WAIT,
                    .ss_flags = 0,
                    .wait_event = 0xffff0000000a0010,
                    .base_priority = 31,
                    .sched_priority = 31,
                    .cpu = 1,
                    .stack = {0x3004, 0x2004}});
    append(writer, {.id = 11,
                    .name = "sleeping",
                    .state = SS_TH_WAIT | SS_TH_UNINT,
                    .ss_flags = 0,
                    .wait_event = 0x4000,
                    .base_priority = 31,
                    .sched_priority = 31,
                    .cpu = 1,
                    .stack = {0x3004}});
    append(writer, {.id = 12,
                    .name = "preempted",
                    .state = SS_TH_RUN,
                    .ss_flags = 0,
                    .wait_event = 0,
                    .base_priority = 31,
                    .sched_priority = 31,
                    .cpu = 2,
                    .stack = {0x3004, 0x5004, 0x1000, 0x2004}});
    append(writer, {.id = 13,
                    .name = "new",
                    .state = SS_TH_RUN,
                    .ss_flags = 0,
                    .wait_event = 0,
                    .base_priority = 31,
                    .sched_priority = 31,
                    .cpu = -1,
                    .stack = {0x2000}});
    append(writer, {.id = 14,
                    .name = "",
                    .state = SS_TH_RUN | SS_TH_TERMINATE,
                    .ss_flags = 0,
                    .wait_event = 0,
                    .base_priority = 31,
                    .sched_priority = 31,
                    .cpu = 1,
                    .stack = {}});
    append(writer, {.id = 15,
                    .name = "never started",
                    .state = SS_TH_WAIT | SS_TH_UNINT,
                    .ss_flags = 0,
                    .wait_event = 0,
                    .base_priority = 31,
                    .sched_priority = 31,
                    .cpu = -1,
                    .stack = {0x2000}});
    must(writer.container_end(7));

    must(writer.append_uint64_with_description("stackshot_tasks_count", 2));
    must(writer.append_uint64_with_description("stackshot_threads_count", 8));
    must(writer.append_value(STACKSHOT_KCTYPE_STACKSHOT_DURATION,
                             stackshot_duration_v2{1500, 2500, 0}));
    must(writer.append_uint64_with_description("stackshot_tries", 1));
    must(writer.end());
    return {storage, storage + writer.used()};
}

Bytes line_with(const Bytes& capture, std::size_t payload) {
    struct Sink final : serial::ByteSink {
        Bytes line{};
        kern_return write(std::span<const std::byte> bytes) override {
            line.insert(line.end(), bytes.begin(), bytes.end());
            return KERN_SUCCESS;
        }
        void text(std::string_view text) { must(write(std::as_bytes(std::span(text)))); }
    } sink;
    sink.text("booting\n");
    serial::Sender sender(capture, sink, {.payload = payload});
    while (!sender.done()) {
        must(sender.send_next());
        sink.text("console text\n");
    }
    sink.text("power off\n");
    return sink.line;
}

}  // namespace tools_test
