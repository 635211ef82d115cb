#include "test/bench/large_capture.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kcdata/records.hpp"
#include "kcdata/types.hpp"
#include "kcdata/writer.hpp"

namespace bench {

namespace {

using namespace kcdata;

void must(kern_return result) {
    if (result != KERN_SUCCESS)
        throw std::runtime_error(kern_return_name(result));
}

class Generator {
  public:
    explicit Generator(std::size_t size) : storage_(size + headroom), writer_(storage_) {}

    std::vector<std::byte> run() {
        must(writer_.begin(KCDATA_BUFFER_BEGIN_STACKSHOT));
        must(writer_.append_uint64_with_description("stackshot_in_flags", 0x20400022));
        must(writer_.append_uint32_with_description("stackshot_in_pid", 0));
        must(writer_.append_uint32_with_description("system_state_flags", 2));
        must(writer_.append_value(STACKSHOT_KCTYPE_KERN_PAGE_SIZE, std::uint32_t{16384}));
        append_text(STACKSHOT_KCTYPE_OSVERSION,
                    "Darwin Kernel Version 24.6.0: root:xnu-11417.140.69~1/RELEASE_ARM64_T6031");
        append_text(STACKSHOT_KCTYPE_BOOTARGS, "debug=0x14e -v keepsyms=1");
        must(writer_.append_value(KCDATA_TYPE_TIMEBASE, mach_timebase_info{125, 3}));
        must(writer_.append_value(KCDATA_TYPE_MACH_ABSOLUTE_TIME, std::uint64_t{3086947152140}));
        must(writer_.append_value(KCDATA_TYPE_USECS_SINCE_EPOCH, std::uint64_t{1448003432781522}));
        must(writer_.append_value(STACKSHOT_KCTYPE_GLOBAL_MEM_STATS, mem_and_io_snapshot{}));
        std::uint64_t tasks = 0;
        while (writer_.used() + headroom / 2 < storage_.size()) {
            append_task(tasks);
            ++tasks;
        }
        must(writer_.append_uint64_with_description("stackshot_tasks_count", tasks));
        must(writer_.append_uint64_with_description("stackshot_threads_count", threads_));
        must(writer_.append_value(STACKSHOT_KCTYPE_STACKSHOT_DURATION,
                                  stackshot_duration_v2{183883, 194031, 0}));
        must(writer_.end());
        storage_.resize(writer_.used());
        return std::move(storage_);
    }

  private:
    /// More than any task takes, twice.
    static constexpr std::size_t headroom = 1 << 20;

    /// 0 to `limit` - 1, small numbers as often as large ones.
    std::uint64_t number(std::uint64_t limit) { return random_() % limit; }
    std::uint64_t kernel_address() { return 0xfffffe0007004000 + number(0x4000000); }
    std::uint64_t user_address() { return 0x180000000 + number(0x40000000); }

    void append_text(std::uint32_t type, std::string_view text) {
        std::string terminated(text);
        terminated += '\0';
        must(writer_.append(type, std::as_bytes(std::span(terminated))));
    }

    void append_task(std::uint64_t index) {
        const std::uint64_t unique_pid = index * 3 + 1;
        must(writer_.container_begin(STACKSHOT_KCCONTAINER_TASK, unique_pid));
        task_snapshot_v2 task{};
        task.ts_unique_pid = unique_pid;
        task.ts_ss_flags = number(1 << 20);
        task.ts_user_time_in_terminated_threads = number(UINT64_C(1) << 40);
        task.ts_system_time_in_terminated_threads = number(UINT64_C(1) << 36);
        task.ts_p_start_sec = 1448000348 + number(100'000);
        task.ts_task_size = number(1 << 30);
        task.ts_max_resident_size = number(1 << 28);
        task.ts_faults = static_cast<std::uint32_t>(number(100'000));
        task.ts_pid = static_cast<std::int32_t>(index);
        fmt::format("com.example.d{}", index).copy(task.ts_p_comm, sizeof(task.ts_p_comm) - 1);
        must(writer_.append_value(STACKSHOT_KCTYPE_TASK_SNAPSHOT, task));
        std::uint64_t io[20];
        for (std::uint64_t& each : io)
            each = number(1 << 24);
        must(writer_.append_value(STACKSHOT_KCTYPE_IOSTATS, io));
        const std::int32_t architecture[] = {16777228, 2};
        must(writer_.append_value(STACKSHOT_KCTYPE_TASK_CPU_ARCHITECTURE, architecture));
        must(writer_.append_value(STACKSHOT_KCTYPE_JETSAM_COALITION, std::uint64_t{index + 7}));
        std::vector<dyld_uuid_info_64> images(number(12) + 1);
        for (dyld_uuid_info_64& image : images) {
            image.imageLoadAddress = user_address();
            for (auto& byte : image.imageUUID)
                byte = static_cast<std::uint8_t>(random_());
        }
        must(writer_.append_array<dyld_uuid_info_64>(KCDATA_TYPE_LIBRARY_LOADINFO64, images));
        const std::uint64_t threads = number(10) == 0 ? 100 : number(16) + 1;
        for (std::uint64_t thread = 0; thread < threads; ++thread)
            append_thread();
        must(writer_.container_end(unique_pid));
    }

    void append_thread() {
        const std::uint64_t id = 1000 + ++threads_;
        must(writer_.container_begin(STACKSHOT_KCCONTAINER_THREAD, id));
        thread_snapshot_v4 thread{};
        thread.ths_thread_id = id;
        thread.ths_wait_event = kernel_address();
        thread.ths_continuation = kernel_address();
        thread.ths_total_syscalls = number(1'000'000);
        thread.ths_dqserialnum = number(1000);
        thread.ths_user_time = number(1 << 30);
        thread.ths_sys_time = number(1 << 28);
        thread.ths_ss_flags = number(1 << 14);
        thread.ths_last_run_time = 3086947152140 - number(1 << 30);
        thread.ths_last_made_runnable_time = 3086947152140 - number(1 << 30);
        thread.ths_state = 0x1;
        thread.ths_base_priority = 31;
        thread.ths_sched_priority = static_cast<std::int16_t>(number(64));
        thread.ths_eqos = 4;
        thread.ths_rqos = 4;
        thread.ths_thread_t = kernel_address();
        thread.ths_requested_policy = random_();
        thread.ths_effective_policy = random_();
        must(writer_.append_value(STACKSHOT_KCTYPE_THREAD_SNAPSHOT, thread));
        if (number(3) == 0) {
            char name[64] = {};
            fmt::format("worker thread {}", id).copy(name, sizeof(name) - 1);
            must(writer_.append_value(STACKSHOT_KCTYPE_THREAD_NAME, name));
        }
        if (number(3) == 0)
            append_text(STACKSHOT_KCTYPE_THREAD_DISPATCH_QUEUE_LABEL, "com.apple.main-thread");
        must(writer_.append_value(
            STACKSHOT_KCTYPE_CPU_TIMES,
            stackshot_cpu_times_v2{number(1 << 24), number(1 << 20), number(1 << 26)}));
        const std::uint64_t cycles[] = {number(UINT64_C(1) << 40), number(UINT64_C(1) << 40), 0, 0};
        must(writer_.append_value(STACKSHOT_KCTYPE_INSTRS_CYCLES, cycles));
        std::vector<std::uint64_t> stack(number(24) + 4);
        for (std::uint64_t& lr : stack)
            lr = kernel_address();
        must(writer_.append_array<std::uint64_t>(STACKSHOT_KCTYPE_KERN_STACKLR64, stack));
        stack.resize(number(40) + 4);
        for (std::uint64_t& lr : stack)
            lr = user_address();
        must(writer_.append_array<std::uint64_t>(STACKSHOT_KCTYPE_USER_STACKLR64, stack));
        must(writer_.append_uint32_with_description("last_processor",
                                                    static_cast<std::uint32_t>(number(12))));
        must(writer_.container_end(id));
    }

    std::vector<std::byte> storage_;
    Writer writer_;
    std::mt19937_64 random_{7};
    std::uint64_t threads_ = 0;
};

}  // namespace

std::vector<std::byte> large_capture(std::size_t size) {
    return Generator(size).run();
}

}  // namespace bench
