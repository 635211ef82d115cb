#include "tools/record_order.hpp"

#include <algorithm>
#include <iterator>

#include "kcdata/types.hpp"
#include "tools/item_layout.hpp"

namespace tools {

using namespace kcdata;

namespace {

struct Place {
    Scope scope;
    int rank;
    std::string_view name;
};

using enum Scope;

// clang-format off
#define RECORD(type) #type
constexpr Place places[] = {
    {top, 1, "stackshot_in_flags"},
    {top, 2, "stackshot_in_pid"},
    {top, 3, "system_state_flags"},
    {top, 4, "stackshot_pagetable_mask"},
    {top, 5, "stackshot_size_estimate"},
    {top, 6, "stackshot_size_estimate_adj"},
    {top, 7, RECORD(STACKSHOT_KCTYPE_JETSAM_LEVEL)},
    {top, 8, RECORD(STACKSHOT_KCTYPE_THREAD_POLICY_VERSION)},
    {top, 9, RECORD(STACKSHOT_KCTYPE_KERN_PAGE_SIZE)},
    {top, 10, RECORD(STACKSHOT_KCTYPE_OSVERSION)},
    {top, 11, RECORD(STACKSHOT_KCTYPE_OS_BUILD_VERSION)},
    {top, 12, RECORD(STACKSHOT_KCTYPE_BOOTARGS)},
    {top, 13, RECORD(KCDATA_TYPE_TIMEBASE)},
    {top, 14, RECORD(STACKSHOT_KCTYPE_DELTA_SINCE_TIMESTAMP)},
    {top, 15, RECORD(KCDATA_TYPE_MACH_ABSOLUTE_TIME)},
    {top, 16, RECORD(KCDATA_TYPE_USECS_SINCE_EPOCH)},
    {top, 17, RECORD(STACKSHOT_KCCONTAINER_SHAREDCACHE)},
    {top, 18, RECORD(STACKSHOT_KCTYPE_SHAREDCACHE_LOADINFO)},
    {top, 19, RECORD(STACKSHOT_KCTYPE_SYS_SHAREDCACHE_LAYOUT)},
    {top, 20, RECORD(STACKSHOT_KCTYPE_GLOBAL_MEM_STATS)},
    {top, 21, RECORD(STACKSHOT_KCTYPE_THREAD_GROUP_SNAPSHOT)},
    {top, 22, "thread_groups_cpu_cycle_count"},
    // One CPU alone writes the coalitions between the tasks and those that are terminated.
    {top, 23, RECORD(STACKSHOT_KCCONTAINER_TASK)},
    {top, 23, RECORD(STACKSHOT_KCCONTAINER_TRANSITIONING_TASK)},
    {top, 23, RECORD(STACKSHOT_KCTYPE_JETSAM_COALITION_SNAPSHOT)},
    {top, 23, "coalitions_cpu_cycle_count"},
    {top, 24, "stackshot_total_cpu_cycle_cnt"},
    {top, 25, "stackshot_tasks_count"},
    {top, 26, "stackshot_threads_count"},
    {top, 27, RECORD(STACKSHOT_KCCONTAINER_EXCLAVES)},
    {top, 28, RECORD(STACKSHOT_KCTYPE_STACKSHOT_FAULT_STATS)},
    {top, 29, RECORD(STACKSHOT_KCTYPE_LATENCY_INFO_CPU)},
    {top, 30, RECORD(STACKSHOT_KCTYPE_LATENCY_INFO)},
    {top, 31, RECORD(STACKSHOT_KCTYPE_STACKSHOT_DURATION)},
    {top, 32, "stackshot_tries"},
    {top, 33, "stackshot_out_flags"},

    {shared_cache, 1, RECORD(STACKSHOT_KCTYPE_SHAREDCACHE_INFO)},
    {shared_cache, 2, RECORD(STACKSHOT_KCTYPE_SYS_SHAREDCACHE_LAYOUT)},

    {task, 1, RECORD(STACKSHOT_KCTYPE_SHAREDCACHE_ID)},
    {task, 2, RECORD(STACKSHOT_KCTYPE_SHAREDCACHE_LOADINFO)},
    {task, 3, RECORD(STACKSHOT_KCTYPE_DYLD_COMPACTINFO)},
    {task, 4, RECORD(KCDATA_TYPE_LIBRARY_LOADINFO)},
    {task, 4, RECORD(KCDATA_TYPE_LIBRARY_LOADINFO64)},
    {task, 4, RECORD(STACKSHOT_KCTYPE_KERNELCACHE_LOADINFO)},
    {task, 4, RECORD(STACKSHOT_KCTYPE_LOADINFO64_TEXT_EXEC)},
    {task, 5, RECORD(STACKSHOT_KCTYPE_TASK_SNAPSHOT)},
    {task, 5, RECORD(STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT)},
    {task, 5, RECORD(STACKSHOT_KCTYPE_TASK_DELTA_SNAPSHOT)},
    {task, 6, RECORD(STACKSHOT_KCTYPE_JETSAM_COALITION)},
    {task, 7, RECORD(STACKSHOT_KCTYPE_ASID)},
    {task, 8, RECORD(STACKSHOT_KCTYPE_PAGE_TABLES)},
    {task, 9, RECORD(STACKSHOT_KCTYPE_IOSTATS)},
    {task, 10, RECORD(STACKSHOT_KCTYPE_INSTRS_CYCLES)},
    {task, 11, RECORD(STACKSHOT_KCTYPE_TASK_CPU_ARCHITECTURE)},
    {task, 12, RECORD(STACKSHOT_KCTYPE_CODESIGNING_INFO)},
    {task, 13, RECORD(TASK_CRASHINFO_CS_AUXILIARY_INFO)},
    {task, 14, RECORD(TASK_CRASHINFO_JIT_ADDRESS_RANGE)},
    {task, 15, RECORD(STACKSHOT_KCTYPE_SUSPENSION_INFO)},
    {task, 16, RECORD(STACKSHOT_KCTYPE_SUSPENSION_SOURCE)},
    {task, 17, RECORD(STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT)},
    {task, 18, RECORD(STACKSHOT_KCCONTAINER_THREAD)},
    {task, 19, RECORD(STACKSHOT_KCTYPE_THREAD_WAITINFO)},
    {task, 20, RECORD(STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO)},
    {task, 21, RECORD(STACKSHOT_KCCONTAINER_PORTLABEL)},
    {task, 22, RECORD(STACKSHOT_KCTYPE_DONATING_PIDS)},
    {task, 23, "task_cpu_cycle_count"},
    {task, 24, RECORD(STACKSHOT_KCTYPE_LATENCY_INFO_TASK)},

    {thread, 1, RECORD(STACKSHOT_KCTYPE_THREAD_SNAPSHOT)},
    {thread, 2, RECORD(STACKSHOT_KCTYPE_THREAD_DISPATCH_QUEUE_LABEL)},
    {thread, 3, RECORD(STACKSHOT_KCTYPE_THREAD_NAME)},
    {thread, 4, RECORD(STACKSHOT_KCTYPE_CPU_TIMES)},
    {thread, 5, RECORD(STACKSHOT_KCTYPE_USER_STACKLR)},
    {thread, 5, RECORD(STACKSHOT_KCTYPE_USER_STACKLR64)},
    {thread, 6, RECORD(STACKSHOT_KCTYPE_USER_ASYNC_START_INDEX)},
    {thread, 7, RECORD(STACKSHOT_KCTYPE_USER_ASYNC_STACKLR64)},
    {thread, 8, RECORD(STACKSHOT_KCTYPE_KERN_EXCLAVES_THREADINFO)},
    {thread, 9, RECORD(STACKSHOT_KCTYPE_KERN_STACKLR)},
    {thread, 9, RECORD(STACKSHOT_KCTYPE_KERN_STACKLR64)},
    {thread, 10, RECORD(STACKSHOT_KCTYPE_THREAD_GROUP)},
    {thread, 11, RECORD(STACKSHOT_KCTYPE_IOSTATS)},
    {thread, 12, RECORD(STACKSHOT_KCTYPE_INSTRS_CYCLES)},
    {thread, 13, RECORD(STACKSHOT_KCTYPE_LATENCY_INFO_THREAD)},

    {port_label, 1, RECORD(STACKSHOT_KCTYPE_PORTLABEL_NAME)},
    {port_label, 2, RECORD(STACKSHOT_KCTYPE_PORTLABEL)},

    {exclaves, 1, RECORD(STACKSHOT_KCCONTAINER_EXCLAVE_SCRESULT)},
    {exclaves, 2, RECORD(STACKSHOT_KCCONTAINER_EXCLAVE_ADDRESSSPACE)},
    {exclaves, 3, RECORD(STACKSHOT_KCCONTAINER_EXCLAVE_TEXTLAYOUT)},
    {exclave_scresult, 1, RECORD(STACKSHOT_KCTYPE_EXCLAVE_SCRESULT_INFO)},
    {exclave_scresult, 2, RECORD(STACKSHOT_KCCONTAINER_EXCLAVE_IPCSTACKENTRY)},
    {exclave_ipcstackentry, 1, RECORD(STACKSHOT_KCTYPE_EXCLAVE_IPCSTACKENTRY_INFO)},
    {exclave_ipcstackentry, 2, RECORD(STACKSHOT_KCTYPE_EXCLAVE_IPCSTACKENTRY_ECSTACK)},
    {exclave_addressspace, 1, RECORD(STACKSHOT_KCTYPE_EXCLAVE_ADDRESSSPACE_INFO)},
    {exclave_addressspace, 2, RECORD(STACKSHOT_KCTYPE_EXCLAVE_ADDRESSSPACE_NAME)},
    {exclave_textlayout, 1, RECORD(STACKSHOT_KCTYPE_EXCLAVE_TEXTLAYOUT_INFO)},
    {exclave_textlayout, 2, RECORD(STACKSHOT_KCTYPE_EXCLAVE_TEXTLAYOUT_SEGMENTS)},
};

constexpr Required required[] = {
    {top, 0, {"stackshot_in_flags", ""}},
    {top, 0, {"stackshot_in_pid", ""}},
    {top, 0, {"system_state_flags", ""}},
    {top, 0, {RECORD(KCDATA_TYPE_MACH_ABSOLUTE_TIME), ""}},
    {top, 0, {RECORD(KCDATA_TYPE_USECS_SINCE_EPOCH), ""}},
    {shared_cache, STACKSHOT_KCCONTAINER_SHAREDCACHE, {RECORD(STACKSHOT_KCTYPE_SHAREDCACHE_INFO), ""}},
    {task, STACKSHOT_KCCONTAINER_TASK,
     {RECORD(STACKSHOT_KCTYPE_TASK_SNAPSHOT), RECORD(STACKSHOT_KCTYPE_TASK_DELTA_SNAPSHOT)}},
    {task, STACKSHOT_KCCONTAINER_TRANSITIONING_TASK, {RECORD(STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT), ""}},
    {thread, STACKSHOT_KCCONTAINER_THREAD, {RECORD(STACKSHOT_KCTYPE_THREAD_SNAPSHOT), ""}},
    {port_label, STACKSHOT_KCCONTAINER_PORTLABEL, {RECORD(STACKSHOT_KCTYPE_PORTLABEL), ""}},
    {exclave_scresult, STACKSHOT_KCCONTAINER_EXCLAVE_SCRESULT,
     {RECORD(STACKSHOT_KCTYPE_EXCLAVE_SCRESULT_INFO), ""}},
    {exclave_ipcstackentry, STACKSHOT_KCCONTAINER_EXCLAVE_IPCSTACKENTRY,
     {RECORD(STACKSHOT_KCTYPE_EXCLAVE_IPCSTACKENTRY_INFO), ""}},
    {exclave_addressspace, STACKSHOT_KCCONTAINER_EXCLAVE_ADDRESSSPACE,
     {RECORD(STACKSHOT_KCTYPE_EXCLAVE_ADDRESSSPACE_INFO), ""}},
    {exclave_textlayout, STACKSHOT_KCCONTAINER_EXCLAVE_TEXTLAYOUT,
     {RECORD(STACKSHOT_KCTYPE_EXCLAVE_TEXTLAYOUT_INFO), ""}},
};
#undef RECORD
// clang-format on

struct Described {
    std::string_view description;
    std::uint32_t type;
};
constexpr Described described[] = {
    {"stackshot_in_flags", KCDATA_TYPE_UINT64_DESC},
    {"stackshot_in_pid", KCDATA_TYPE_UINT32_DESC},
    {"system_state_flags", KCDATA_TYPE_UINT64_DESC},
    {"stackshot_pagetable_mask", KCDATA_TYPE_UINT32_DESC},
    {"stackshot_size_estimate", KCDATA_TYPE_UINT32_DESC},
    {"stackshot_size_estimate_adj", KCDATA_TYPE_UINT32_DESC},
    {"stackshot_tasks_count", KCDATA_TYPE_UINT64_DESC},
    {"stackshot_threads_count", KCDATA_TYPE_UINT64_DESC},
    {"stackshot_tries", KCDATA_TYPE_UINT64_DESC},
    {"stackshot_out_flags", KCDATA_TYPE_UINT64_DESC},
};

}  // namespace

Scope scope_of(std::uint32_t container_type) {
    switch (container_type) {
        case STACKSHOT_KCCONTAINER_SHAREDCACHE:
            return shared_cache;
        case STACKSHOT_KCCONTAINER_TASK:
        case STACKSHOT_KCCONTAINER_TRANSITIONING_TASK:
            return task;
        case STACKSHOT_KCCONTAINER_THREAD:
            return thread;
        case STACKSHOT_KCCONTAINER_PORTLABEL:
            return port_label;
        case STACKSHOT_KCCONTAINER_EXCLAVES:
            return exclaves;
        case STACKSHOT_KCCONTAINER_EXCLAVE_SCRESULT:
            return exclave_scresult;
        case STACKSHOT_KCCONTAINER_EXCLAVE_IPCSTACKENTRY:
            return exclave_ipcstackentry;
        case STACKSHOT_KCCONTAINER_EXCLAVE_ADDRESSSPACE:
            return exclave_addressspace;
        case STACKSHOT_KCCONTAINER_EXCLAVE_TEXTLAYOUT:
            return exclave_textlayout;
        default:
            return other;
    }
}

std::string_view record_name(std::uint32_t type, std::string_view description) {
    return description.empty() ? type_name(type) : description;
}

std::optional<int> rank_in(Scope scope, std::string_view name) {
    for (const Place& place : places)
        if (place.scope == scope && place.name == name)
            return place.rank;
    return std::nullopt;
}

bool belongs_elsewhere(std::string_view name) {
    return std::any_of(std::begin(places), std::end(places),
                       [name](const Place& place) { return place.name == name; });
}

std::span<const Required> required_records() {
    return required;
}

bool is_of_delta(std::uint32_t type) {
    return type == STACKSHOT_KCTYPE_DELTA_SINCE_TIMESTAMP ||
           type == STACKSHOT_KCTYPE_TASK_DELTA_SNAPSHOT ||
           type == STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT;
}

bool is_of_full(std::uint32_t type) {
    return type == STACKSHOT_KCTYPE_THREAD_POLICY_VERSION ||
           type == STACKSHOT_KCTYPE_KERN_PAGE_SIZE || type == STACKSHOT_KCTYPE_OSVERSION ||
           type == STACKSHOT_KCTYPE_OS_BUILD_VERSION || type == STACKSHOT_KCTYPE_BOOTARGS ||
           type == KCDATA_TYPE_TIMEBASE;
}

bool comes_in_numbers(std::uint32_t type) {
    switch (type) {
        case STACKSHOT_KCTYPE_DONATING_PIDS:
        case STACKSHOT_KCTYPE_KERN_STACKFRAME:
        case STACKSHOT_KCTYPE_KERN_STACKFRAME64:
        case STACKSHOT_KCTYPE_USER_STACKFRAME:
        case STACKSHOT_KCTYPE_USER_STACKFRAME64:
        case STACKSHOT_KCTYPE_KERN_STACKLR:
        case STACKSHOT_KCTYPE_KERN_STACKLR64:
        case STACKSHOT_KCTYPE_USER_STACKLR:
        case STACKSHOT_KCTYPE_USER_STACKLR64:
        case STACKSHOT_KCTYPE_NONRUNNABLE_TIDS:
        case STACKSHOT_KCTYPE_NONRUNNABLE_TASKS:
        case STACKSHOT_KCTYPE_THREAD_WAITINFO:
        case STACKSHOT_KCTYPE_THREAD_GROUP_SNAPSHOT:
        case STACKSHOT_KCTYPE_JETSAM_COALITION_SNAPSHOT:
        case STACKSHOT_KCTYPE_PAGE_TABLES:
        case STACKSHOT_KCTYPE_SYS_SHAREDCACHE_LAYOUT:
        case STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO:
        case STACKSHOT_KCTYPE_LOADINFO64_TEXT_EXEC:
        case STACKSHOT_KCTYPE_USER_ASYNC_STACKLR64:
        case STACKSHOT_KCTYPE_SUSPENSION_SOURCE:
        case STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT:
        case STACKSHOT_KCTYPE_EXCLAVE_IPCSTACKENTRY_ECSTACK:
        case STACKSHOT_KCTYPE_EXCLAVE_TEXTLAYOUT_SEGMENTS:
        case STACKSHOT_KCTYPE_LATENCY_INFO_CPU:
            return true;
        default:
            return false;
    }
}

std::string_view id_field(std::uint32_t type) {
    switch (type) {
        case STACKSHOT_KCTYPE_TASK_SNAPSHOT:
            return "ts_unique_pid";
        case STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT:
            return "tts_unique_pid";
        case STACKSHOT_KCTYPE_TASK_DELTA_SNAPSHOT:
            return "tds_unique_pid";
        case STACKSHOT_KCTYPE_THREAD_SNAPSHOT:
            return "ths_thread_id";
        default:
            return {};
    }
}

std::uint32_t type_of_described(std::string_view description) {
    for (const Described& each : described)
        if (each.description == description)
            return each.type;
    return 0;
}

}  // namespace tools
