#include "kcdata/schema.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "kcdata/format.hpp"
#include "kcdata/records.hpp"
#include "kcdata/types.hpp"

namespace kcdata {

namespace {

using enum FieldType;
using enum Shape;

/// A line of the table: a type, or a field of the type above it.
struct Row {
    Type type{};
    Field field{};
    bool is_type = false;

    /// libkdd has another key for the field than its name.
    consteval Row keyed(std::string_view key) const {
        Row row = *this;
        row.field.key = key;
        return row;
    }
    /// libkdd prints the field as if it were of another type.
    consteval Row printed_as(FieldType type_printed) const {
        Row row = *this;
        row.field.read_as = type_printed;
        return row;
    }
    /// libkdd does not know the field.
    consteval Row undecoded() const {
        Row row = *this;
        row.field.decoded = false;
        return row;
    }
    consteval Row address() const {
        Row row = *this;
        row.field.is_address = true;
        return row;
    }
};

consteval Row type(std::uint32_t id, std::string_view name, std::string_view key, Shape shape) {
    return {.type = {.id = id, .name = name, .key = key, .shape = shape}, .is_type = true};
}
#define TYPE(id, ...) type(id, #id, __VA_ARGS__)

consteval Row field(std::string_view name, FieldType type, std::uint32_t offset,
                    std::uint32_t count = 1) {
    return {.field = {.name = name,
                      .type = type,
                      .offset = offset,
                      .count = count,
                      .key = name.substr(0, Field::max_key),
                      .read_as = type}};
}

// clang-format off
constexpr Row rows[] = {
    TYPE(KCDATA_TYPE_STRING_DESC, "string_desc", described),
        field("desc", character, 0, 32),
        field("data", character, 32, Field::unbounded),
    TYPE(KCDATA_TYPE_UINT32_DESC, "uint32_desc", described),
        field("desc", character, 0, 32),
        field("data", u32, 32),
    TYPE(KCDATA_TYPE_UINT64_DESC, "uint64_desc", described),
        field("desc", character, 0, 32),
        field("data", u64, 32),
    TYPE(KCDATA_TYPE_INT32_DESC, "int32_desc", described),
        field("desc", character, 0, 32),
        field("data", i32, 32),
    TYPE(KCDATA_TYPE_INT64_DESC, "int64_desc", described),
        field("desc", character, 0, 32),
        field("data", i64, 32),
    TYPE(KCDATA_TYPE_BINDATA_DESC, "", opaque),
    TYPE(KCDATA_TYPE_TYPEDEFINTION, "typedef", type_definition),
        field("kct_type_identifier", u32, 0).keyed("typeID"),
        field("kct_num_elements", u32, 4).keyed("numOfFields"),
        field("kct_name", character, 8, 32).keyed("name"),
    TYPE(KCDATA_TYPE_LIBRARY_LOADINFO, "dyld_load_info", structure),
        field("imageLoadAddress", u32, 0).address(),
        field("imageUUID", u8, 4, 16),
    TYPE(KCDATA_TYPE_LIBRARY_LOADINFO64, "dyld_load_info", structure),
        field("imageLoadAddress", u64, 0).address(),
        field("imageUUID", u8, 8, 16),
    TYPE(KCDATA_TYPE_TIMEBASE, "mach_timebase_info", structure),
        field("numer", u32, 0),
        field("denom", u32, 4),
    TYPE(KCDATA_TYPE_MACH_ABSOLUTE_TIME, "mach_absolute_time", basic),
        field("mach_absolute_time", u64, 0),
    TYPE(KCDATA_TYPE_TIMEVAL, "timeval", structure),
        field("tv_sec", i64, 0),
        field("tv_usec", i64, 8),
    TYPE(KCDATA_TYPE_USECS_SINCE_EPOCH, "usecs_since_epoch", basic),
        field("usecs_since_epoch", u64, 0),
    TYPE(KCDATA_TYPE_PID, "pid", basic),
        field("pid", i32, 0),
    TYPE(KCDATA_TYPE_PROCNAME, "proc_name", basic),
        field("proc_name", character, 0, 64),
    TYPE(KCDATA_TYPE_NESTED_KCDATA, "", nested),
    TYPE(KCDATA_TYPE_LIBRARY_AOTINFO, "dyld_aot_info", structure),
        field("x86LoadAddress", u64, 0).address(),
        field("aotLoadAddress", u64, 8).address(),
        field("aotImageSize", u64, 16),
        field("aotImageKey", u8, 24, 32),
    TYPE(TASK_CRASHINFO_EXTMODINFO, "", opaque),
    TYPE(TASK_CRASHINFO_BSDINFOWITHUNIQID, "proc_uniqidentifierinfo", structure),
        field("p_uuid", u8, 0, 16),
        field("p_uniqueid", u64, 16),
        field("p_puniqueid", u64, 24),
        field("p_reserve2", u64, 32).undecoded(),
        field("p_reserve3", u64, 40).undecoded(),
        field("p_reserve4", u64, 48).undecoded(),
    TYPE(TASK_CRASHINFO_TASKDYLD_INFO, "", opaque),
    TYPE(TASK_CRASHINFO_UUID, "", opaque),
    TYPE(TASK_CRASHINFO_PID, "pid", basic),
        field("pid", i32, 0),
    TYPE(TASK_CRASHINFO_PPID, "ppid", basic),
        field("ppid", i32, 0),
    TYPE(TASK_CRASHINFO_RUSAGE, "", opaque),
    TYPE(TASK_CRASHINFO_RUSAGE_INFO, "rusage_info", structure),
        field("ri_uuid", u8, 0, 16),
        field("ri_user_time", u64, 16),
        field("ri_system_time", u64, 24),
        field("ri_pkg_idle_wkups", u64, 32),
        field("ri_interrupt_wkups", u64, 40),
        field("ri_pageins", u64, 48),
        field("ri_wired_size", u64, 56),
        field("ri_resident_size", u64, 64),
        field("ri_phys_footprint", u64, 72),
        field("ri_proc_start_abstime", u64, 80),
        field("ri_proc_exit_abstime", u64, 88),
        field("ri_child_user_time", u64, 96),
        field("ri_child_system_time", u64, 104),
        field("ri_child_pkg_idle_wkups", u64, 112),
        field("ri_child_interrupt_wkups", u64, 120),
        field("ri_child_pageins", u64, 128),
        field("ri_child_elapsed_abstime", u64, 136),
        field("ri_diskio_bytesread", u64, 144),
        field("ri_diskio_byteswritten", u64, 152),
        field("ri_cpu_time_qos_default", u64, 160),
        field("ri_cpu_time_qos_maintenance", u64, 168),
        field("ri_cpu_time_qos_background", u64, 176),
        field("ri_cpu_time_qos_utility", u64, 184),
        field("ri_cpu_time_qos_legacy", u64, 192),
        field("ri_cpu_time_qos_user_initiated", u64, 200),
        field("ri_cpu_time_qos_user_interactive", u64, 208),
        field("ri_billed_system_time", u64, 216),
        field("ri_serviced_system_time", u64, 224),
    TYPE(TASK_CRASHINFO_PROC_NAME, "p_comm", basic),
        field("p_comm", character, 0, Field::unbounded),
    TYPE(TASK_CRASHINFO_PROC_STARTTIME, "proc_starttime", structure),
        field("tv_sec", i64, 0),
        field("tv_usec", i64, 8),
    TYPE(TASK_CRASHINFO_USERSTACK, "userstack_ptr", basic),
        field("userstack_ptr", u64, 0).address(),
    TYPE(TASK_CRASHINFO_ARGSLEN, "p_argslen", basic),
        field("p_argslen", i32, 0),
    TYPE(TASK_CRASHINFO_EXCEPTION_CODES, "mach_exception_data_t", structure),
        field("code_0", u64, 0),
        field("code_1", u64, 8),
    TYPE(TASK_CRASHINFO_PROC_PATH, "p_path", basic),
        field("p_path", character, 0, Field::unbounded),
    TYPE(TASK_CRASHINFO_PROC_CSFLAGS, "p_csflags", basic),
        field("p_csflags", u32, 0),
    TYPE(TASK_CRASHINFO_PROC_STATUS, "p_status", basic),
        field("p_status", u8, 0),
    TYPE(TASK_CRASHINFO_UID, "uid", basic),
        field("uid", i32, 0),
    TYPE(TASK_CRASHINFO_GID, "gid", basic),
        field("gid", i32, 0),
    TYPE(TASK_CRASHINFO_PROC_ARGC, "argc", basic),
        field("argc", i32, 0),
    TYPE(TASK_CRASHINFO_PROC_FLAGS, "p_flags", basic),
        field("p_flags", u32, 0),
    TYPE(TASK_CRASHINFO_CPUTYPE, "cputype", basic),
        field("cputype", i32, 0),
    TYPE(TASK_CRASHINFO_WORKQUEUEINFO, "", opaque),
    TYPE(TASK_CRASHINFO_RESPONSIBLE_PID, "responsible_pid", basic),
        field("responsible_pid", i32, 0),
    TYPE(TASK_CRASHINFO_DIRTY_FLAGS, "dirty_flags", basic),
        field("dirty_flags", u32, 0),
    TYPE(TASK_CRASHINFO_CRASHED_THREADID, "crashed_threadid", basic),
        field("crashed_threadid", u64, 0),
    TYPE(TASK_CRASHINFO_COALITION_ID, "coalition_id", basic),
        field("coalition_id", u64, 0),
    TYPE(TASK_CRASHINFO_UDATA_PTRS, "udata_ptrs", basic),
        field("udata_ptrs", u64, 0).address(),
    TYPE(TASK_CRASHINFO_MEMORY_LIMIT, "task_phys_mem_limit", basic),
        field("task_phys_mem_limit", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_INTERNAL, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_INTERNAL_COMPRESSED, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_IOKIT_MAPPED, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_ALTERNATE_ACCOUNTING, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_ALTERNATE_ACCOUNTING_COMPRESSED, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_PURGEABLE_NONVOLATILE, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_PURGEABLE_NONVOLATILE_COMPRESSED, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_PAGE_TABLE, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_PHYS_FOOTPRINT, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_PHYS_FOOTPRINT_LIFETIME_MAX, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_NETWORK_NONVOLATILE, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_NETWORK_NONVOLATILE_COMPRESSED, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_WIRED_MEM, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_PROC_PERSONA_ID, "", opaque),
        field("value", u32, 0),
    TYPE(TASK_CRASHINFO_MEMORY_LIMIT_INCREASE, "", opaque),
        field("value", u32, 0),
    TYPE(TASK_CRASHINFO_LEDGER_TAGGED_FOOTPRINT, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_TAGGED_FOOTPRINT_COMPRESSED, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_MEDIA_FOOTPRINT, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_MEDIA_FOOTPRINT_COMPRESSED, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_GRAPHICS_FOOTPRINT, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_GRAPHICS_FOOTPRINT_COMPRESSED, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_NEURAL_FOOTPRINT, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_LEDGER_NEURAL_FOOTPRINT_COMPRESSED, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_CRASHINFO_MEMORYSTATUS_EFFECTIVE_PRIORITY, "", opaque),
        field("value", i32, 0),
    TYPE(TASK_CRASHINFO_KERNEL_TRIAGE_INFO_V1, "kernel_triage_info_v1", structure),
        field("triage_string1", character, 0, 128),
        field("triage_string2", character, 128, 128),
        field("triage_string3", character, 256, 128),
        field("triage_string4", character, 384, 128),
        field("triage_string5", character, 512, 128),
    TYPE(TASK_CRASHINFO_TASK_IS_CORPSE_FORK, "task_is_corpse_fork", basic),
        field("task_is_corpse_fork", u32, 0),
    TYPE(TASK_CRASHINFO_EXCEPTION_TYPE, "exception_type", basic),
        field("exception_type", u32, 0),
    TYPE(TASK_CRASHINFO_CRASH_COUNT, "", opaque),
        field("value", i32, 0),
    TYPE(TASK_CRASHINFO_THROTTLE_TIMEOUT, "", opaque),
        field("value", i32, 0),
    TYPE(TASK_CRASHINFO_CS_SIGNING_ID, "cs_signing_id", basic),
        field("cs_signing_id", character, 0, Field::unbounded),
    TYPE(TASK_CRASHINFO_CS_TEAM_ID, "cs_team_id", basic),
        field("cs_team_id", character, 0, Field::unbounded),
    TYPE(TASK_CRASHINFO_CS_VALIDATION_CATEGORY, "cs_validation_category", basic),
        field("cs_validation_category", u32, 0),
    TYPE(TASK_CRASHINFO_CS_TRUST_LEVEL, "cs_trust_level", basic),
        field("cs_trust_level", u32, 0),
    TYPE(TASK_CRASHINFO_PROC_CPUTYPE, "", opaque),
        field("value", i32, 0),
    TYPE(TASK_CRASHINFO_JIT_ADDRESS_RANGE, "start_address", basic),
        field("start_address", u64, 0).address(),
        field("end_address", u64, 8).undecoded().address(),
    TYPE(TASK_CRASHINFO_MB, "cs_auxiliary_info", basic),
        field("start_address", u64, 0).keyed("cs_auxiliary_info"),
        field("data", u64, 8, 64).undecoded(),
    TYPE(TASK_CRASHINFO_CS_AUXILIARY_INFO, "cs_auxiliary_info", basic),
        field("cs_auxiliary_info", u64, 0),
    TYPE(STACKSHOT_KCTYPE_IOSTATS, "io_statistics", structure),
        field("ss_disk_reads_count", u64, 0),
        field("ss_disk_reads_size", u64, 8),
        field("ss_disk_writes_count", u64, 16),
        field("ss_disk_writes_size", u64, 24),
        field("ss_io_priority_count", u64, 32, 4),
        field("ss_io_priority_size", u64, 64, 4),
        field("ss_paging_count", u64, 96),
        field("ss_paging_size", u64, 104),
        field("ss_non_paging_count", u64, 112),
        field("ss_non_paging_size", u64, 120),
        field("ss_data_count", u64, 128),
        field("ss_data_size", u64, 136),
        field("ss_metadata_count", u64, 144),
        field("ss_metadata_size", u64, 152),
    TYPE(STACKSHOT_KCTYPE_GLOBAL_MEM_STATS, "mem_and_io_snapshot", structure),
        field("snapshot_magic", u32, 0),
        field("free_pages", u32, 4),
        field("active_pages", u32, 8),
        field("inactive_pages", u32, 12),
        field("purgeable_pages", u32, 16),
        field("wired_pages", u32, 20),
        field("speculative_pages", u32, 24),
        field("throttled_pages", u32, 28),
        field("filebacked_pages", u32, 32),
        field("compressions", u32, 36),
        field("decompressions", u32, 40),
        field("compressor_size", u32, 44),
        field("busy_buffer_count", i32, 48).printed_as(u32),
        field("pages_wanted", u32, 52),
        field("pages_reclaimed", u32, 56),
        field("pages_wanted_reclaimed_valid", u8, 60),
    TYPE(STACKSHOT_KCCONTAINER_TASK, "task_snapshots", container),
    TYPE(STACKSHOT_KCCONTAINER_THREAD, "thread_snapshots", container),
    TYPE(STACKSHOT_KCTYPE_TASK_SNAPSHOT, "task_snapshot", structure),
        field("ts_unique_pid", u64, 0),
        field("ts_ss_flags", u64, 8),
        field("ts_user_time_in_terminated_threads", u64, 16),
        field("ts_system_time_in_terminated_threads", u64, 24),
        field("ts_p_start_sec", u64, 32),
        field("ts_task_size", u64, 40),
        field("ts_max_resident_size", u64, 48),
        field("ts_suspend_count", u32, 56),
        field("ts_faults", u32, 60),
        field("ts_pageins", u32, 64),
        field("ts_cow_faults", u32, 68),
        field("ts_was_throttled", u32, 72),
        field("ts_did_throttle", u32, 76),
        field("ts_latency_qos", u32, 80),
        field("ts_pid", i32, 84),
        field("ts_p_comm", character, 88, 32),
    TYPE(STACKSHOT_KCTYPE_THREAD_SNAPSHOT, "thread_snapshot", structure),
        field("ths_thread_id", u64, 0),
        field("ths_wait_event", u64, 8).address(),
        field("ths_continuation", u64, 16).address(),
        field("ths_total_syscalls", u64, 24),
        field("ths_voucher_identifier", u64, 32),
        field("ths_dqserialnum", u64, 40),
        field("ths_user_time", u64, 48),
        field("ths_sys_time", u64, 56),
        field("ths_ss_flags", u64, 64),
        field("ths_last_run_time", u64, 72),
        field("ths_last_made_runnable_time", u64, 80),
        field("ths_state", u32, 88),
        field("ths_sched_flags", u32, 92),
        field("ths_base_priority", i16, 96),
        field("ths_sched_priority", i16, 98),
        field("ths_eqos", u8, 100),
        field("ths_rqos", u8, 101),
        field("ths_rqos_override", u8, 102),
        field("ths_io_tier", u8, 103),
        field("ths_thread_t", u64, 104).address(),
        field("ths_requested_policy", u64, 112),
        field("ths_effective_policy", u64, 120),
    TYPE(STACKSHOT_KCTYPE_DONATING_PIDS, "donating_pids", basic),
        field("donating_pids", i32, 0),
    TYPE(STACKSHOT_KCTYPE_SHAREDCACHE_LOADINFO, "shared_cache_dyld_load_info", structure),
        field("sharedCacheSlide", u64, 0).keyed("imageLoadAddress").address(),
        field("sharedCacheUUID", u8, 8, 16).keyed("imageUUID"),
        field("sharedCacheUnreliableSlidBaseAddress", u64, 24).keyed("imageSlidBaseAddress").address(),
        field("sharedCacheSlidFirstMapping", u64, 32).address(),
        field("sharedCacheID", u32, 40),
        field("sharedCacheFlags", u32, 44),
    TYPE(STACKSHOT_KCTYPE_THREAD_NAME, "pth_name", basic),
        field("pth_name", character, 0, 64),
    TYPE(STACKSHOT_KCTYPE_KERN_STACKFRAME, "kernel_stack_frames", structure),
        field("lr", u32, 0).address(),
        field("sp", u32, 4).address(),
    TYPE(STACKSHOT_KCTYPE_KERN_STACKFRAME64, "kernel_stack_frames", structure),
        field("lr", u64, 0).address(),
        field("sp", u64, 8).address(),
    TYPE(STACKSHOT_KCTYPE_USER_STACKFRAME, "user_stack_frames", structure),
        field("lr", u32, 0).address(),
        field("sp", u32, 4).address(),
    TYPE(STACKSHOT_KCTYPE_USER_STACKFRAME64, "user_stack_frames", structure),
        field("lr", u64, 0).address(),
        field("sp", u64, 8).address(),
    TYPE(STACKSHOT_KCTYPE_BOOTARGS, "boot_args", basic),
        field("boot_args", character, 0, Field::unbounded),
    TYPE(STACKSHOT_KCTYPE_OSVERSION, "osversion", basic),
        field("osversion", character, 0, Field::unbounded),
    TYPE(STACKSHOT_KCTYPE_KERN_PAGE_SIZE, "kernel_page_size", basic),
        field("kernel_page_size", u32, 0),
    TYPE(STACKSHOT_KCTYPE_JETSAM_LEVEL, "jetsam_level", basic),
        field("jetsam_level", u32, 0),
    TYPE(STACKSHOT_KCTYPE_DELTA_SINCE_TIMESTAMP, "stackshot_delta_since_timestamp", basic),
        field("stackshot_delta_since_timestamp", u64, 0),
    TYPE(STACKSHOT_KCTYPE_KERN_STACKLR, "kernel_stack_frames", structure),
        field("lr", u32, 0).address(),
    TYPE(STACKSHOT_KCTYPE_KERN_STACKLR64, "kernel_stack_frames", structure),
        field("lr", u64, 0).address(),
    TYPE(STACKSHOT_KCTYPE_USER_STACKLR, "user_stack_frames", structure),
        field("lr", u32, 0).address(),
    TYPE(STACKSHOT_KCTYPE_USER_STACKLR64, "user_stack_frames", structure),
        field("lr", u64, 0).address(),
    TYPE(STACKSHOT_KCTYPE_NONRUNNABLE_TIDS, "nonrunnable_threads", basic),
        field("nonrunnable_threads", i64, 0),
    TYPE(STACKSHOT_KCTYPE_NONRUNNABLE_TASKS, "nonrunnable_tasks", basic),
        field("nonrunnable_tasks", i64, 0),
    TYPE(STACKSHOT_KCTYPE_CPU_TIMES, "cpu_times", structure),
        field("user_usec", u64, 0),
        field("system_usec", u64, 8),
        field("runnable_usec", u64, 16),
    TYPE(STACKSHOT_KCTYPE_STACKSHOT_DURATION, "stackshot_duration", merged),
        field("stackshot_duration", u64, 0),
        field("stackshot_duration_outer", u64, 8),
        field("stackshot_duration_prior", u64, 16),
    TYPE(STACKSHOT_KCTYPE_STACKSHOT_FAULT_STATS, "stackshot_fault_stats", structure),
        field("sfs_pages_faulted_in", u32, 0),
        field("sfs_time_spent_faulting", u64, 4),
        field("sfs_system_max_fault_time", u64, 12),
        field("sfs_stopped_faulting", u8, 20),
    TYPE(STACKSHOT_KCTYPE_KERNELCACHE_LOADINFO, "kernelcache_load_info", structure),
        field("imageLoadAddress", u64, 0).address(),
        field("imageUUID", u8, 8, 16),
    TYPE(STACKSHOT_KCTYPE_THREAD_WAITINFO, "thread_waitinfo", structure),
        field("owner", u64, 0),
        field("waiter", u64, 8),
        field("context", u64, 16),
        field("wait_type", u8, 24),
        field("portlabel_id", i16, 25),
        field("wait_flags", u32, 27),
    TYPE(STACKSHOT_KCTYPE_THREAD_GROUP_SNAPSHOT, "thread_group_snapshot", structure),
        field("tgs_id", u64, 0),
        field("tgs_name", character, 8, 16),
        field("tgs_flags", u64, 24),
        field("tgs_name_cont", character, 32, 16),
    TYPE(STACKSHOT_KCTYPE_THREAD_GROUP, "thread_group", basic),
        field("thread_group", u64, 0),
    TYPE(STACKSHOT_KCTYPE_JETSAM_COALITION_SNAPSHOT, "jetsam_coalition_snapshot", structure),
        field("jcs_id", u64, 0),
        field("jcs_flags", u64, 8),
        field("jcs_thread_group", u64, 16),
        field("jcs_leader_task_uniqueid", u64, 24),
    TYPE(STACKSHOT_KCTYPE_JETSAM_COALITION, "jetsam_coalition", basic),
        field("jetsam_coalition", u64, 0),
    TYPE(STACKSHOT_KCTYPE_THREAD_POLICY_VERSION, "thread_policy_version", basic),
        field("thread_policy_version", u32, 0),
    TYPE(STACKSHOT_KCTYPE_INSTRS_CYCLES, "instrs_cycles_snapshot", structure),
        field("ics_instructions", u64, 0),
        field("ics_cycles", u64, 8),
        field("ics_p_instructions", u64, 16),
        field("ics_p_cycles", u64, 24),
    TYPE(STACKSHOT_KCTYPE_USER_STACKTOP, "user_stacktop", structure),
        field("sp", u64, 0).address(),
        field("stack_contents", u8, 8, 8),
    TYPE(STACKSHOT_KCTYPE_ASID, "ts_asid", basic),
        field("ts_asid", u32, 0),
    TYPE(STACKSHOT_KCTYPE_PAGE_TABLES, "ts_pagetable", basic),
        field("ts_pagetable", u64, 0).address(),
    TYPE(STACKSHOT_KCTYPE_SYS_SHAREDCACHE_LAYOUT, "system_shared_cache_layout", structure),
        field("imageLoadAddress", u64, 0).address(),
        field("imageUUID", u8, 8, 16),
    TYPE(STACKSHOT_KCTYPE_THREAD_DISPATCH_QUEUE_LABEL, "dispatch_queue_label", basic),
        field("dispatch_queue_label", character, 0, Field::unbounded),
    TYPE(STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO, "thread_turnstileinfo", structure),
        field("waiter", u64, 0),
        field("turnstile_context", u64, 8),
        field("turnstile_priority", u8, 16),
        field("number_of_hops", u8, 17),
        field("turnstile_flags", u64, 18),
        field("portlabel_id", i16, 26),
    TYPE(STACKSHOT_KCTYPE_TASK_CPU_ARCHITECTURE, "task_cpu_architecture", structure),
        field("cputype", i32, 0),
        field("cpusubtype", i32, 4),
    TYPE(STACKSHOT_KCTYPE_LATENCY_INFO, "stackshot_latency_collection", structure),
        field("latency_version", u64, 0),
        field("setup_latency_mt", u64, 8).keyed("setup_latency"),
        field("total_task_iteration_latency_mt", u64, 16).keyed("total_task_iteration_latency"),
        field("total_terminated_task_iteration_latency_mt", u64, 24),
        field("task_queue_building_latency_mt", u64, 32).undecoded(),
        field("terminated_task_queue_building_latency_mt", u64, 40).undecoded(),
        field("cpu_wait_latency_mt", u64, 48).undecoded(),
        field("main_cpu_number", i32, 56).undecoded(),
        field("calling_cpu_number", i32, 60).undecoded(),
        field("buffer_size", u64, 64).undecoded(),
        field("buffer_used", u64, 72).undecoded(),
        field("buffer_overhead", u64, 80).undecoded(),
        field("buffer_count", u64, 88).undecoded(),
    TYPE(STACKSHOT_KCTYPE_LATENCY_INFO_TASK, "stackshot_latency_task", structure),
        field("task_uniqueid", u64, 0),
        field("setup_latency", u64, 8),
        field("task_thread_count_loop_latency", u64, 16),
        field("task_thread_data_loop_latency", u64, 24),
        field("cur_tsnap_latency", u64, 32),
        field("pmap_latency", u64, 40),
        field("bsd_proc_ids_latency", u64, 48),
        field("misc_latency", u64, 56),
        field("misc2_latency", u64, 64),
        field("end_latency", u64, 72),
    TYPE(STACKSHOT_KCTYPE_LATENCY_INFO_THREAD, "stackshot_latency_thread", structure),
        field("thread_id", u64, 0),
        field("cur_thsnap1_latency", u64, 8),
        field("dispatch_serial_latency", u64, 16),
        field("dispatch_label_latency", u64, 24),
        field("cur_thsnap2_latency", u64, 32),
        field("thread_name_latency", u64, 40),
        field("sur_times_latency", u64, 48),
        field("user_stack_latency", u64, 56),
        field("kernel_stack_latency", u64, 64),
        field("misc_latency", u64, 72),
    TYPE(STACKSHOT_KCTYPE_LOADINFO64_TEXT_EXEC, "dyld_load_info_text_exec", structure),
        field("imageLoadAddress", u64, 0).address(),
        field("imageUUID", u8, 8, 16),
    TYPE(STACKSHOT_KCTYPE_AOTCACHE_LOADINFO, "dyld_aot_cache_uuid_info", structure),
        field("x86SlidBaseAddress", u64, 0).address(),
        field("x86UUID", u8, 8, 16),
        field("aotSlidBaseAddress", u64, 24).address(),
        field("aotUUID", u8, 32, 16),
    TYPE(STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT, "transitioning_task_snapshot", structure),
        field("tts_unique_pid", u64, 0),
        field("tts_ss_flags", u64, 8),
        field("tts_transition_type", u64, 16),
        field("tts_pid", i32, 24),
        field("tts_p_comm", character, 28, 32),
    TYPE(STACKSHOT_KCCONTAINER_TRANSITIONING_TASK, "transitioning_task_snapshots", container),
    TYPE(STACKSHOT_KCTYPE_USER_ASYNC_START_INDEX, "user_async_start_index", basic),
        field("user_async_start_index", u32, 0),
    TYPE(STACKSHOT_KCTYPE_USER_ASYNC_STACKLR64, "user_async_stack_frames", structure),
        field("lr", u64, 0).address(),
    TYPE(STACKSHOT_KCCONTAINER_PORTLABEL, "portlabels", container),
    TYPE(STACKSHOT_KCTYPE_PORTLABEL, "portlabel_info", merged),
        field("portlabel_id", i16, 0),
        field("portlabel_flags", u16, 2),
        field("portlabel_domain", u8, 4).printed_as(i8),
    TYPE(STACKSHOT_KCTYPE_PORTLABEL_NAME, "portlabel_name", basic),
        field("portlabel_name", character, 0, Field::unbounded),
    TYPE(STACKSHOT_KCTYPE_DYLD_COMPACTINFO, "", opaque),
    TYPE(STACKSHOT_KCTYPE_SUSPENSION_INFO, "", opaque),
        field("tss_last_start", u64, 0),
        field("tss_last_end", u64, 8),
        field("tss_count", u64, 16),
        field("tss_duration", u64, 24),
    TYPE(STACKSHOT_KCTYPE_SUSPENSION_SOURCE, "", opaque),
        field("tss_time", u64, 0),
        field("tss_tid", u64, 8),
        field("tss_pid", i32, 16),
        field("tss_procname", character, 20, 65),
    TYPE(STACKSHOT_KCTYPE_TASK_DELTA_SNAPSHOT, "task_delta_snapshot", structure),
        field("tds_unique_pid", u64, 0),
        field("tds_ss_flags", u64, 8),
        field("tds_user_time_in_terminated_threads", u64, 16),
        field("tds_system_time_in_terminated_threads", u64, 24),
        field("tds_task_size", u64, 32),
        field("tds_max_resident_size", u64, 40),
        field("tds_suspend_count", u32, 48),
        field("tds_faults", u32, 52),
        field("tds_pageins", u32, 56),
        field("tds_cow_faults", u32, 60),
        field("tds_was_throttled", u32, 64),
        field("tds_did_throttle", u32, 68),
        field("tds_latency_qos", u32, 72),
    TYPE(STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT, "thread_delta_snapshot", structure),
        field("tds_thread_id", u64, 0),
        field("tds_voucher_identifier", u64, 8),
        field("tds_ss_flags", u64, 16),
        field("tds_last_made_runnable_time", u64, 24),
        field("tds_state", u32, 32),
        field("tds_sched_flags", u32, 36),
        field("tds_base_priority", i16, 40),
        field("tds_sched_priority", i16, 42),
        field("tds_eqos", u8, 44),
        field("tds_rqos", u8, 45),
        field("tds_rqos_override", u8, 46),
        field("tds_io_tier", u8, 47),
        field("tds_requested_policy", u64, 48),
        field("tds_effective_policy", u64, 56),
    TYPE(STACKSHOT_KCCONTAINER_SHAREDCACHE, "shared_caches", container),
    TYPE(STACKSHOT_KCTYPE_SHAREDCACHE_INFO, "shared_cache_dyld_load_info", structure),
        field("sharedCacheSlide", u64, 0).address(),
        field("sharedCacheUUID", u8, 8, 16),
        field("sharedCacheUnreliableSlidBaseAddress", u64, 24).address(),
        field("sharedCacheSlidFirstMapping", u64, 32).address(),
        field("sharedCacheID", u32, 40),
        field("sharedCacheFlags", u32, 44),
    TYPE(STACKSHOT_KCTYPE_SHAREDCACHE_AOTINFO, "dyld_aot_cache_uuid_info", structure),
        field("x86SlidBaseAddress", u64, 0).address(),
        field("x86UUID", u8, 8, 16),
        field("aotSlidBaseAddress", u64, 24).address(),
        field("aotUUID", u8, 32, 16),
    TYPE(STACKSHOT_KCTYPE_SHAREDCACHE_ID, "sharedCacheID", basic),
        field("sharedCacheID", u32, 0).printed_as(i32),
    TYPE(STACKSHOT_KCTYPE_CODESIGNING_INFO, "stackshot_task_codesigning_info", structure),
        field("csflags", u64, 0),
        field("cs_trust_level", u32, 8),
    TYPE(STACKSHOT_KCTYPE_OS_BUILD_VERSION, "os_build_version", basic),
        field("os_build_version", character, 0, Field::unbounded),
    TYPE(STACKSHOT_KCTYPE_KERN_EXCLAVES_THREADINFO, "exclaves_thread_info", structure),
        field("tei_scid", u64, 0),
        field("tei_thread_offset", u32, 8),
        field("tei_flags", u32, 12),
    TYPE(STACKSHOT_KCCONTAINER_EXCLAVES, "threads_exclave", container),
    TYPE(STACKSHOT_KCCONTAINER_EXCLAVE_SCRESULT, "thread_exclave", container),
    TYPE(STACKSHOT_KCTYPE_EXCLAVE_SCRESULT_INFO, "exclave_scresult_info", structure),
        field("esc_id", u64, 0),
        field("esc_flags", u64, 8),
    TYPE(STACKSHOT_KCCONTAINER_EXCLAVE_IPCSTACKENTRY, "exclave_ipcstackentry", container),
    TYPE(STACKSHOT_KCTYPE_EXCLAVE_IPCSTACKENTRY_INFO, "exclave_ipcstackentry_info", structure),
        field("eise_asid", u64, 0),
        field("eise_tnid", u64, 8),
        field("eise_invocationid", u64, 16),
        field("eise_flags", u64, 24),
    TYPE(STACKSHOT_KCTYPE_EXCLAVE_IPCSTACKENTRY_ECSTACK, "secure_ecstack_entry", structure),
        field("lr", u64, 0).address(),
    TYPE(STACKSHOT_KCCONTAINER_EXCLAVE_ADDRESSSPACE, "exclave_addressspace", container),
    TYPE(STACKSHOT_KCTYPE_EXCLAVE_ADDRESSSPACE_INFO, "exclave_addressspace_info", structure),
        field("eas_id", u64, 0),
        field("eas_flags", u64, 8),
        field("eas_layoutid", u64, 16),
        field("eas_slide", u64, 24).address(),
        field("eas_asroot", u64, 32).address(),
    TYPE(STACKSHOT_KCTYPE_EXCLAVE_ADDRESSSPACE_NAME, "exclave_addressspace_name", basic),
        field("exclave_addressspace_name", character, 0, Field::unbounded),
    TYPE(STACKSHOT_KCCONTAINER_EXCLAVE_TEXTLAYOUT, "exclave_textlayout", container),
    TYPE(STACKSHOT_KCTYPE_EXCLAVE_TEXTLAYOUT_INFO, "exclave_textlayout_info", structure),
        field("layout_id", u64, 0),
        field("etl_flags", u64, 8),
        field("sharedcache_index", u32, 16),
    TYPE(STACKSHOT_KCTYPE_EXCLAVE_TEXTLAYOUT_SEGMENTS, "exclave_textlayout_segments", structure),
        field("layoutSegment_uuid", u8, 0, 16),
        field("layoutSegment_loadAddress", u64, 16).address(),
        field("layoutSegment_rawLoadAddress", u64, 24).address(),
    TYPE(STACKSHOT_KCTYPE_KERN_EXCLAVES_CRASH_THREADINFO, "exclaves_crash_thread_info", structure),
        field("tcei_scid", u64, 0),
        field("tcei_thread_id", u64, 8),
        field("tcei_flags", u32, 16),
    TYPE(STACKSHOT_KCTYPE_LATENCY_INFO_CPU, "", opaque),
        field("cpu_number", i32, 0),
        field("cluster_type", i32, 4),
        field("init_latency_mt", u64, 8),
        field("workqueue_latency_mt", u64, 16),
        field("total_latency_mt", u64, 24),
        field("total_cycles", u64, 32),
        field("total_instrs", u64, 40),
        field("tasks_processed", u64, 48),
        field("threads_processed", u64, 56),
        field("faulting_time_mt", u64, 64),
        field("total_buf", u64, 72),
        field("intercluster_buf_used", u64, 80),
    TYPE(TASK_BTINFO_PID, "", opaque),
    TYPE(TASK_BTINFO_PPID, "", opaque),
    TYPE(TASK_BTINFO_PROC_NAME, "", opaque),
    TYPE(TASK_BTINFO_PROC_PATH, "", opaque),
    TYPE(TASK_BTINFO_UID, "", opaque),
    TYPE(TASK_BTINFO_GID, "", opaque),
    TYPE(TASK_BTINFO_PROC_FLAGS, "", opaque),
    TYPE(TASK_BTINFO_CPUTYPE, "", opaque),
    TYPE(TASK_BTINFO_EXCEPTION_CODES, "", opaque),
    TYPE(TASK_BTINFO_EXCEPTION_TYPE, "", opaque),
    TYPE(TASK_BTINFO_RUSAGE_INFO, "", opaque),
        field("ri_uuid", u8, 0, 16),
        field("ri_user_time", u64, 16),
        field("ri_system_time", u64, 24),
        field("ri_pkg_idle_wkups", u64, 32),
        field("ri_interrupt_wkups", u64, 40),
        field("ri_pageins", u64, 48),
        field("ri_wired_size", u64, 56),
        field("ri_resident_size", u64, 64),
        field("ri_phys_footprint", u64, 72),
        field("ri_proc_start_abstime", u64, 80),
        field("ri_proc_exit_abstime", u64, 88),
        field("ri_child_user_time", u64, 96),
        field("ri_child_system_time", u64, 104),
        field("ri_child_pkg_idle_wkups", u64, 112),
        field("ri_child_interrupt_wkups", u64, 120),
        field("ri_child_pageins", u64, 128),
        field("ri_child_elapsed_abstime", u64, 136),
        field("ri_diskio_bytesread", u64, 144),
        field("ri_diskio_byteswritten", u64, 152),
        field("ri_cpu_time_qos_default", u64, 160),
        field("ri_cpu_time_qos_maintenance", u64, 168),
        field("ri_cpu_time_qos_background", u64, 176),
        field("ri_cpu_time_qos_utility", u64, 184),
        field("ri_cpu_time_qos_legacy", u64, 192),
        field("ri_cpu_time_qos_user_initiated", u64, 200),
        field("ri_cpu_time_qos_user_interactive", u64, 208),
        field("ri_billed_system_time", u64, 216),
        field("ri_serviced_system_time", u64, 224),
    TYPE(TASK_BTINFO_COALITION_ID, "", opaque),
    TYPE(TASK_BTINFO_CRASH_COUNT, "", opaque),
    TYPE(TASK_BTINFO_THROTTLE_TIMEOUT, "", opaque),
    TYPE(TASK_BTINFO_THREAD_ID, "", opaque),
        field("value", u64, 0),
    TYPE(TASK_BTINFO_THREAD_NAME, "", opaque),
        field("value", character, 0, Field::unbounded),
    TYPE(TASK_BTINFO_THREAD_STATE, "", opaque),
        field("flavor", u32, 0),
        field("count", u32, 4),
        field("tstate", i32, 8, 0),
    TYPE(TASK_BTINFO_THREAD_EXCEPTION_STATE, "", opaque),
        field("flavor", u32, 0),
        field("count", u32, 4),
        field("tstate", i32, 8, 0),
    TYPE(TASK_BTINFO_BACKTRACE, "", opaque),
    TYPE(TASK_BTINFO_BACKTRACE64, "", opaque),
    TYPE(TASK_BTINFO_ASYNC_BACKTRACE64, "", opaque),
    TYPE(TASK_BTINFO_ASYNC_START_INDEX, "", opaque),
        field("value", u32, 0),
    TYPE(TASK_BTINFO_PLATFORM, "", opaque),
        field("value", u32, 0),
    TYPE(TASK_BTINFO_SC_LOADINFO, "", opaque),
        field("sharedCacheSlide", u32, 0).address(),
        field("sharedCacheUUID", u8, 4, 16),
        field("sharedCacheBaseAddress", u32, 20).address(),
    TYPE(TASK_BTINFO_SC_LOADINFO64, "", opaque),
        field("sharedCacheSlide", u64, 0).address(),
        field("sharedCacheUUID", u8, 8, 16),
        field("sharedCacheBaseAddress", u64, 24).address(),
    TYPE(TASK_BTINFO_FLAGS, "", opaque),
        field("value", u32, 0),
    TYPE(EXIT_REASON_SNAPSHOT, "exit_reason_basic_info", structure),
        field("ers_namespace", u32, 0),
        field("ers_code", u64, 4),
        field("ers_flags", u64, 12),
    TYPE(EXIT_REASON_USER_DESC, "exit_reason_user_description", basic),
        field("exit_reason_user_description", character, 0, Field::unbounded),
    TYPE(EXIT_REASON_USER_PAYLOAD, "exit_reason_user_payload", basic),
        field("exit_reason_user_payload", u8, 0, 2048),
    TYPE(EXIT_REASON_CODESIGNING_INFO, "exit_reason_codesigning_info", structure),
        field("ceri_virt_addr", u64, 0).address(),
        field("ceri_file_offset", u64, 8),
        field("ceri_pathname", character, 16, 1024),
        field("ceri_filename", character, 1040, 1024),
        field("ceri_codesig_modtime_secs", u64, 2064),
        field("ceri_codesig_modtime_nsecs", u64, 2072),
        field("ceri_page_modtime_secs", u64, 2080),
        field("ceri_page_modtime_nsecs", u64, 2088),
        field("ceri_path_truncated", u8, 2096),
        field("ceri_object_codesigned", u8, 2097),
        field("ceri_page_codesig_validated", u8, 2098),
        field("ceri_page_codesig_tainted", u8, 2099),
        field("ceri_page_codesig_nx", u8, 2100),
        field("ceri_page_wpmapped", u8, 2101),
        field("ceri_page_slid", u8, 2102),
        field("ceri_page_dirty", u8, 2103),
        field("ceri_page_shadow_depth", u32, 2104),
    TYPE(EXIT_REASON_WORKLOOP_ID, "exit_reason_workloop_id", basic),
        field("exit_reason_workloop_id", u64, 0),
    TYPE(EXIT_REASON_DISPATCH_QUEUE_NO, "exit_reason_dispatch_queue_no", basic),
        field("exit_reason_dispatch_queue_no", u64, 0),
    TYPE(XNUPOST_KCTYPE_TESTCONFIG, "", opaque),
    TYPE(KCDATA_BUFFER_BEGIN_XNUPOST_CONFIG, "xnupost_testconfig", buffer),
    TYPE(KCDATA_BUFFER_BEGIN_COMPRESSED, "", buffer),
    TYPE(KCDATA_BUFFER_BEGIN_BTINFO, "", buffer),
    TYPE(KCDATA_BUFFER_BEGIN_OS_REASON, "kcdata_reason", buffer),
    TYPE(KCDATA_BUFFER_BEGIN_STACKSHOT, "kcdata_stackshot", buffer),
    TYPE(KCDATA_BUFFER_BEGIN_DELTA_STACKSHOT, "kcdata_delta_stackshot", buffer),
    TYPE(KCDATA_BUFFER_BEGIN_CRASHINFO, "kcdata_crashinfo", buffer),
};
// clang-format on

#undef TYPE

constexpr std::size_t type_count = static_cast<std::size_t>(
    std::count_if(std::begin(rows), std::end(rows), [](const Row& row) { return row.is_type; }));

constexpr auto fields = [] {
    std::array<Field, std::size(rows) - type_count> result{};
    std::size_t count = 0;
    for (const Row& row : rows)
        if (!row.is_type)
            result[count++] = row.field;
    return result;
}();

constexpr auto types = [] {
    std::array<Type, type_count> result{};
    std::size_t count = 0;
    std::size_t first_field = 0;
    std::size_t end_field = 0;
    for (const Row& row : rows) {
        if (row.is_type) {
            result[count++] = row.type;
            first_field = end_field;
        } else {
            ++end_field;
        }
        result[count - 1].fields = std::span(fields).subspan(first_field, end_field - first_field);
    }
    return result;
}();
static_assert(std::is_sorted(types.begin(), types.end(),
                             [](const Type& a, const Type& b) { return a.id < b.id; }));

constexpr const Type* find(std::uint32_t id) {
    const auto found =
        std::lower_bound(types.begin(), types.end(), id,
                         [](const Type& type, std::uint32_t value) { return type.id < value; });
    return found != types.end() && found->id == id ? &*found : nullptr;
}

}  // namespace

std::span<const Type> schema() {
    return types;
}

const Type* find_type(std::uint32_t id) {
    return find(id);
}

// The structs of records.hpp, field by field.
namespace {

template <typename T>
consteval FieldType field_type() {
    using Element = std::remove_all_extents_t<T>;
    if constexpr (std::is_same_v<Element, char>)
        return character;
    else if constexpr (std::is_same_v<Element, std::int8_t>)
        return i8;
    else if constexpr (std::is_same_v<Element, std::uint8_t>)
        return u8;
    else if constexpr (std::is_same_v<Element, std::int16_t>)
        return i16;
    else if constexpr (std::is_same_v<Element, std::uint16_t>)
        return u16;
    else if constexpr (std::is_same_v<Element, std::int32_t>)
        return i32;
    else if constexpr (std::is_same_v<Element, std::uint32_t>)
        return u32;
    else if constexpr (std::is_same_v<Element, std::int64_t>)
        return i64;
    else
        return u64;
}

struct Member {
    std::string_view name;
    FieldType type;
    std::size_t offset;
    std::size_t size;
};

template <typename Struct, std::size_t count>
consteval bool lies_as(std::uint32_t id, const Member (&members)[count]) {
    const Type* type = find(id);
    if (type == nullptr || type->fields.size() != count)
        return false;
    std::size_t end = 0;
    for (std::size_t index = 0; index < count; ++index) {
        const Field& expected = type->fields[index];
        const Member& member = members[index];
        if (member.name != expected.name || member.type != expected.type ||
            member.offset != expected.offset || member.size != expected.size() ||
            member.offset != end)
            return false;
        end += member.size;
    }
    return sizeof(Struct) == end;
}

#define MEMBER(record, name)                                                   \
    Member {                                                                   \
#name, field_type < decltype(record::name)>(), offsetof(record, name), \
            sizeof(record::name)                                               \
    }

static_assert(lies_as<dyld_uuid_info_64>(KCDATA_TYPE_LIBRARY_LOADINFO64,
                                         {
                                             MEMBER(dyld_uuid_info_64, imageLoadAddress),
                                             MEMBER(dyld_uuid_info_64, imageUUID),
                                         }));
static_assert(lies_as<dyld_uuid_info_64>(STACKSHOT_KCTYPE_KERNELCACHE_LOADINFO,
                                         {
                                             MEMBER(dyld_uuid_info_64, imageLoadAddress),
                                             MEMBER(dyld_uuid_info_64, imageUUID),
                                         }));
static_assert(lies_as<mach_timebase_info>(KCDATA_TYPE_TIMEBASE,
                                          {
                                              MEMBER(mach_timebase_info, numer),
                                              MEMBER(mach_timebase_info, denom),
                                          }));
static_assert(lies_as<mem_and_io_snapshot>(STACKSHOT_KCTYPE_GLOBAL_MEM_STATS,
                                           {
                                               MEMBER(mem_and_io_snapshot, snapshot_magic),
                                               MEMBER(mem_and_io_snapshot, free_pages),
                                               MEMBER(mem_and_io_snapshot, active_pages),
                                               MEMBER(mem_and_io_snapshot, inactive_pages),
                                               MEMBER(mem_and_io_snapshot, purgeable_pages),
                                               MEMBER(mem_and_io_snapshot, wired_pages),
                                               MEMBER(mem_and_io_snapshot, speculative_pages),
                                               MEMBER(mem_and_io_snapshot, throttled_pages),
                                               MEMBER(mem_and_io_snapshot, filebacked_pages),
                                               MEMBER(mem_and_io_snapshot, compressions),
                                               MEMBER(mem_and_io_snapshot, decompressions),
                                               MEMBER(mem_and_io_snapshot, compressor_size),
                                               MEMBER(mem_and_io_snapshot, busy_buffer_count),
                                               MEMBER(mem_and_io_snapshot, pages_wanted),
                                               MEMBER(mem_and_io_snapshot, pages_reclaimed),
                                               MEMBER(mem_and_io_snapshot,
                                                      pages_wanted_reclaimed_valid),
                                           }));
static_assert(
    lies_as<task_snapshot_v2>(STACKSHOT_KCTYPE_TASK_SNAPSHOT,
                              {
                                  MEMBER(task_snapshot_v2, ts_unique_pid),
                                  MEMBER(task_snapshot_v2, ts_ss_flags),
                                  MEMBER(task_snapshot_v2, ts_user_time_in_terminated_threads),
                                  MEMBER(task_snapshot_v2, ts_system_time_in_terminated_threads),
                                  MEMBER(task_snapshot_v2, ts_p_start_sec),
                                  MEMBER(task_snapshot_v2, ts_task_size),
                                  MEMBER(task_snapshot_v2, ts_max_resident_size),
                                  MEMBER(task_snapshot_v2, ts_suspend_count),
                                  MEMBER(task_snapshot_v2, ts_faults),
                                  MEMBER(task_snapshot_v2, ts_pageins),
                                  MEMBER(task_snapshot_v2, ts_cow_faults),
                                  MEMBER(task_snapshot_v2, ts_was_throttled),
                                  MEMBER(task_snapshot_v2, ts_did_throttle),
                                  MEMBER(task_snapshot_v2, ts_latency_qos),
                                  MEMBER(task_snapshot_v2, ts_pid),
                                  MEMBER(task_snapshot_v2, ts_p_comm),
                              }));
static_assert(lies_as<thread_snapshot_v4>(
    STACKSHOT_KCTYPE_THREAD_SNAPSHOT, {
                                          MEMBER(thread_snapshot_v4, ths_thread_id),
                                          MEMBER(thread_snapshot_v4, ths_wait_event),
                                          MEMBER(thread_snapshot_v4, ths_continuation),
                                          MEMBER(thread_snapshot_v4, ths_total_syscalls),
                                          MEMBER(thread_snapshot_v4, ths_voucher_identifier),
                                          MEMBER(thread_snapshot_v4, ths_dqserialnum),
                                          MEMBER(thread_snapshot_v4, ths_user_time),
                                          MEMBER(thread_snapshot_v4, ths_sys_time),
                                          MEMBER(thread_snapshot_v4, ths_ss_flags),
                                          MEMBER(thread_snapshot_v4, ths_last_run_time),
                                          MEMBER(thread_snapshot_v4, ths_last_made_runnable_time),
                                          MEMBER(thread_snapshot_v4, ths_state),
                                          MEMBER(thread_snapshot_v4, ths_sched_flags),
                                          MEMBER(thread_snapshot_v4, ths_base_priority),
                                          MEMBER(thread_snapshot_v4, ths_sched_priority),
                                          MEMBER(thread_snapshot_v4, ths_eqos),
                                          MEMBER(thread_snapshot_v4, ths_rqos),
                                          MEMBER(thread_snapshot_v4, ths_rqos_override),
                                          MEMBER(thread_snapshot_v4, ths_io_tier),
                                          MEMBER(thread_snapshot_v4, ths_thread_t),
                                          MEMBER(thread_snapshot_v4, ths_requested_policy),
                                          MEMBER(thread_snapshot_v4, ths_effective_policy),
                                      }));
static_assert(lies_as<transitioning_task_snapshot>(
    STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT,
    {
        MEMBER(transitioning_task_snapshot, tts_unique_pid),
        MEMBER(transitioning_task_snapshot, tts_ss_flags),
        MEMBER(transitioning_task_snapshot, tts_transition_type),
        MEMBER(transitioning_task_snapshot, tts_pid),
        MEMBER(transitioning_task_snapshot, tts_p_comm),
    }));
static_assert(lies_as<task_delta_snapshot_v2>(
    STACKSHOT_KCTYPE_TASK_DELTA_SNAPSHOT,
    {
        MEMBER(task_delta_snapshot_v2, tds_unique_pid),
        MEMBER(task_delta_snapshot_v2, tds_ss_flags),
        MEMBER(task_delta_snapshot_v2, tds_user_time_in_terminated_threads),
        MEMBER(task_delta_snapshot_v2, tds_system_time_in_terminated_threads),
        MEMBER(task_delta_snapshot_v2, tds_task_size),
        MEMBER(task_delta_snapshot_v2, tds_max_resident_size),
        MEMBER(task_delta_snapshot_v2, tds_suspend_count),
        MEMBER(task_delta_snapshot_v2, tds_faults),
        MEMBER(task_delta_snapshot_v2, tds_pageins),
        MEMBER(task_delta_snapshot_v2, tds_cow_faults),
        MEMBER(task_delta_snapshot_v2, tds_was_throttled),
        MEMBER(task_delta_snapshot_v2, tds_did_throttle),
        MEMBER(task_delta_snapshot_v2, tds_latency_qos),
    }));
static_assert(lies_as<thread_delta_snapshot_v3>(
    STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT,
    {
        MEMBER(thread_delta_snapshot_v3, tds_thread_id),
        MEMBER(thread_delta_snapshot_v3, tds_voucher_identifier),
        MEMBER(thread_delta_snapshot_v3, tds_ss_flags),
        MEMBER(thread_delta_snapshot_v3, tds_last_made_runnable_time),
        MEMBER(thread_delta_snapshot_v3, tds_state),
        MEMBER(thread_delta_snapshot_v3, tds_sched_flags),
        MEMBER(thread_delta_snapshot_v3, tds_base_priority),
        MEMBER(thread_delta_snapshot_v3, tds_sched_priority),
        MEMBER(thread_delta_snapshot_v3, tds_eqos),
        MEMBER(thread_delta_snapshot_v3, tds_rqos),
        MEMBER(thread_delta_snapshot_v3, tds_rqos_override),
        MEMBER(thread_delta_snapshot_v3, tds_io_tier),
        MEMBER(thread_delta_snapshot_v3, tds_requested_policy),
        MEMBER(thread_delta_snapshot_v3, tds_effective_policy),
    }));
static_assert(lies_as<stack_snapshot_stacklr64>(STACKSHOT_KCTYPE_KERN_STACKLR64,
                                                {
                                                    MEMBER(stack_snapshot_stacklr64, lr),
                                                }));
static_assert(lies_as<stack_snapshot_stacklr64>(STACKSHOT_KCTYPE_USER_STACKLR64,
                                                {
                                                    MEMBER(stack_snapshot_stacklr64, lr),
                                                }));
static_assert(lies_as<stackshot_cpu_times_v2>(STACKSHOT_KCTYPE_CPU_TIMES,
                                              {
                                                  MEMBER(stackshot_cpu_times_v2, user_usec),
                                                  MEMBER(stackshot_cpu_times_v2, system_usec),
                                                  MEMBER(stackshot_cpu_times_v2, runnable_usec),
                                              }));
static_assert(lies_as<stackshot_thread_waitinfo_v2>(
    STACKSHOT_KCTYPE_THREAD_WAITINFO, {
                                          MEMBER(stackshot_thread_waitinfo_v2, owner),
                                          MEMBER(stackshot_thread_waitinfo_v2, waiter),
                                          MEMBER(stackshot_thread_waitinfo_v2, context),
                                          MEMBER(stackshot_thread_waitinfo_v2, wait_type),
                                          MEMBER(stackshot_thread_waitinfo_v2, portlabel_id),
                                          MEMBER(stackshot_thread_waitinfo_v2, wait_flags),
                                      }));
static_assert(lies_as<stackshot_thread_turnstileinfo_v2>(
    STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO,
    {
        MEMBER(stackshot_thread_turnstileinfo_v2, waiter),
        MEMBER(stackshot_thread_turnstileinfo_v2, turnstile_context),
        MEMBER(stackshot_thread_turnstileinfo_v2, turnstile_priority),
        MEMBER(stackshot_thread_turnstileinfo_v2, number_of_hops),
        MEMBER(stackshot_thread_turnstileinfo_v2, turnstile_flags),
        MEMBER(stackshot_thread_turnstileinfo_v2, portlabel_id),
    }));
static_assert(lies_as<portlabel_info>(STACKSHOT_KCTYPE_PORTLABEL,
                                      {
                                          MEMBER(portlabel_info, portlabel_id),
                                          MEMBER(portlabel_info, portlabel_flags),
                                          MEMBER(portlabel_info, portlabel_domain),
                                      }));
static_assert(lies_as<io_stats_snapshot>(STACKSHOT_KCTYPE_IOSTATS,
                                         {
                                             MEMBER(io_stats_snapshot, ss_disk_reads_count),
                                             MEMBER(io_stats_snapshot, ss_disk_reads_size),
                                             MEMBER(io_stats_snapshot, ss_disk_writes_count),
                                             MEMBER(io_stats_snapshot, ss_disk_writes_size),
                                             MEMBER(io_stats_snapshot, ss_io_priority_count),
                                             MEMBER(io_stats_snapshot, ss_io_priority_size),
                                             MEMBER(io_stats_snapshot, ss_paging_count),
                                             MEMBER(io_stats_snapshot, ss_paging_size),
                                             MEMBER(io_stats_snapshot, ss_non_paging_count),
                                             MEMBER(io_stats_snapshot, ss_non_paging_size),
                                             MEMBER(io_stats_snapshot, ss_data_count),
                                             MEMBER(io_stats_snapshot, ss_data_size),
                                             MEMBER(io_stats_snapshot, ss_metadata_count),
                                             MEMBER(io_stats_snapshot, ss_metadata_size),
                                         }));
static_assert(lies_as<instrs_cycles_snapshot_v2>(
    STACKSHOT_KCTYPE_INSTRS_CYCLES, {
                                        MEMBER(instrs_cycles_snapshot_v2, ics_instructions),
                                        MEMBER(instrs_cycles_snapshot_v2, ics_cycles),
                                        MEMBER(instrs_cycles_snapshot_v2, ics_p_instructions),
                                        MEMBER(instrs_cycles_snapshot_v2, ics_p_cycles),
                                    }));
static_assert(lies_as<thread_group_snapshot_v3>(STACKSHOT_KCTYPE_THREAD_GROUP_SNAPSHOT,
                                                {
                                                    MEMBER(thread_group_snapshot_v3, tgs_id),
                                                    MEMBER(thread_group_snapshot_v3, tgs_name),
                                                    MEMBER(thread_group_snapshot_v3, tgs_flags),
                                                    MEMBER(thread_group_snapshot_v3, tgs_name_cont),
                                                }));
static_assert(lies_as<jetsam_coalition_snapshot>(
    STACKSHOT_KCTYPE_JETSAM_COALITION_SNAPSHOT,
    {
        MEMBER(jetsam_coalition_snapshot, jcs_id),
        MEMBER(jetsam_coalition_snapshot, jcs_flags),
        MEMBER(jetsam_coalition_snapshot, jcs_thread_group),
        MEMBER(jetsam_coalition_snapshot, jcs_leader_task_uniqueid),
    }));
static_assert(
    lies_as<stackshot_duration_v2>(STACKSHOT_KCTYPE_STACKSHOT_DURATION,
                                   {
                                       MEMBER(stackshot_duration_v2, stackshot_duration),
                                       MEMBER(stackshot_duration_v2, stackshot_duration_outer),
                                       MEMBER(stackshot_duration_v2, stackshot_duration_prior),
                                   }));
static_assert(lies_as<stackshot_latency_collection_v2>(
    STACKSHOT_KCTYPE_LATENCY_INFO,
    {
        MEMBER(stackshot_latency_collection_v2, latency_version),
        MEMBER(stackshot_latency_collection_v2, setup_latency_mt),
        MEMBER(stackshot_latency_collection_v2, total_task_iteration_latency_mt),
        MEMBER(stackshot_latency_collection_v2, total_terminated_task_iteration_latency_mt),
        MEMBER(stackshot_latency_collection_v2, task_queue_building_latency_mt),
        MEMBER(stackshot_latency_collection_v2, terminated_task_queue_building_latency_mt),
        MEMBER(stackshot_latency_collection_v2, cpu_wait_latency_mt),
        MEMBER(stackshot_latency_collection_v2, main_cpu_number),
        MEMBER(stackshot_latency_collection_v2, calling_cpu_number),
        MEMBER(stackshot_latency_collection_v2, buffer_size),
        MEMBER(stackshot_latency_collection_v2, buffer_used),
        MEMBER(stackshot_latency_collection_v2, buffer_overhead),
        MEMBER(stackshot_latency_collection_v2, buffer_count),
    }));
static_assert(lies_as<stackshot_latency_task>(
    STACKSHOT_KCTYPE_LATENCY_INFO_TASK,
    {
        MEMBER(stackshot_latency_task, task_uniqueid),
        MEMBER(stackshot_latency_task, setup_latency),
        MEMBER(stackshot_latency_task, task_thread_count_loop_latency),
        MEMBER(stackshot_latency_task, task_thread_data_loop_latency),
        MEMBER(stackshot_latency_task, cur_tsnap_latency),
        MEMBER(stackshot_latency_task, pmap_latency),
        MEMBER(stackshot_latency_task, bsd_proc_ids_latency),
        MEMBER(stackshot_latency_task, misc_latency),
        MEMBER(stackshot_latency_task, misc2_latency),
        MEMBER(stackshot_latency_task, end_latency),
    }));
static_assert(
    lies_as<stackshot_latency_thread>(STACKSHOT_KCTYPE_LATENCY_INFO_THREAD,
                                      {
                                          MEMBER(stackshot_latency_thread, thread_id),
                                          MEMBER(stackshot_latency_thread, cur_thsnap1_latency),
                                          MEMBER(stackshot_latency_thread, dispatch_serial_latency),
                                          MEMBER(stackshot_latency_thread, dispatch_label_latency),
                                          MEMBER(stackshot_latency_thread, cur_thsnap2_latency),
                                          MEMBER(stackshot_latency_thread, thread_name_latency),
                                          MEMBER(stackshot_latency_thread, sur_times_latency),
                                          MEMBER(stackshot_latency_thread, user_stack_latency),
                                          MEMBER(stackshot_latency_thread, kernel_stack_latency),
                                          MEMBER(stackshot_latency_thread, misc_latency),
                                      }));

#undef MEMBER

}  // namespace

}  // namespace kcdata
