#pragma once

#include <cstddef>
#include <cstdint>

#include "kcdata/types.hpp"

namespace kcdata {

// The payloads of the records that are written, under XNU's names (osfmk/kern/kcdata.h). All are
// little-endian and hold their bytes without padding; schema.cpp checks every field against the
// schema at compile time. Items start on 16-byte boundaries of the writer's buffer, so a payload
// may be filled in place.

/// STACKSHOT_KCTYPE_KERNELCACHE_LOADINFO, KCDATA_TYPE_LIBRARY_LOADINFO64: one loaded image.
struct dyld_uuid_info_64 {
    std::uint64_t imageLoadAddress;
    std::uint8_t imageUUID[16];
};
static_assert(sizeof(dyld_uuid_info_64) == 24);

/// KCDATA_TYPE_TIMEBASE: absolute time * numer / denom is nanoseconds.
struct mach_timebase_info {
    std::uint32_t numer;
    std::uint32_t denom;
};
static_assert(sizeof(mach_timebase_info) == 8);

/// STACKSHOT_KCTYPE_GLOBAL_MEM_STATS.
struct [[gnu::packed]] mem_and_io_snapshot {
    std::uint32_t snapshot_magic;
    std::uint32_t free_pages;
    std::uint32_t active_pages;
    std::uint32_t inactive_pages;
    std::uint32_t purgeable_pages;
    std::uint32_t wired_pages;
    std::uint32_t speculative_pages;
    std::uint32_t throttled_pages;
    std::uint32_t filebacked_pages;
    std::uint32_t compressions;
    std::uint32_t decompressions;
    std::uint32_t compressor_size;
    std::int32_t busy_buffer_count;
    std::uint32_t pages_wanted;
    std::uint32_t pages_reclaimed;
    std::uint8_t pages_wanted_reclaimed_valid;
};
static_assert(sizeof(mem_and_io_snapshot) == 61);

/// STACKSHOT_KCTYPE_IOSTATS: what a task or a thread has read and written since it began. Sizes in
/// bytes.
struct io_stats_snapshot {
    std::uint64_t ss_disk_reads_count;
    std::uint64_t ss_disk_reads_size;
    std::uint64_t ss_disk_writes_count;
    std::uint64_t ss_disk_writes_size;
    std::uint64_t ss_io_priority_count[4];  ///< by I/O tier
    std::uint64_t ss_io_priority_size[4];
    std::uint64_t ss_paging_count;
    std::uint64_t ss_paging_size;
    std::uint64_t ss_non_paging_count;
    std::uint64_t ss_non_paging_size;
    std::uint64_t ss_data_count;
    std::uint64_t ss_data_size;
    std::uint64_t ss_metadata_count;
    std::uint64_t ss_metadata_size;
};
static_assert(sizeof(io_stats_snapshot) == 160);

/// STACKSHOT_KCTYPE_INSTRS_CYCLES of a thread. 0 instructions: the CPU counts none.
struct instrs_cycles_snapshot {
    std::uint64_t ics_instructions;
    std::uint64_t ics_cycles;
};
static_assert(sizeof(instrs_cycles_snapshot) == 16);

/// STACKSHOT_KCTYPE_INSTRS_CYCLES of a task. ics_p_...: thereof on P cores.
struct instrs_cycles_snapshot_v2 {
    std::uint64_t ics_instructions;
    std::uint64_t ics_cycles;
    std::uint64_t ics_p_instructions;
    std::uint64_t ics_p_cycles;
};
static_assert(sizeof(instrs_cycles_snapshot_v2) == 32);

/// Element of STACKSHOT_KCTYPE_THREAD_GROUP_SNAPSHOT.
struct thread_group_snapshot_v3 {
    std::uint64_t tgs_id;
    char tgs_name[16];
    std::uint64_t tgs_flags;
    char tgs_name_cont[16];
};
static_assert(sizeof(thread_group_snapshot_v3) == 48);

/// Element of STACKSHOT_KCTYPE_JETSAM_COALITION_SNAPSHOT.
struct jetsam_coalition_snapshot {
    std::uint64_t jcs_id;
    std::uint64_t jcs_flags;
    std::uint64_t jcs_thread_group;
    std::uint64_t jcs_leader_task_uniqueid;
};
static_assert(sizeof(jetsam_coalition_snapshot) == 32);

/// Payload of STACKSHOT_KCTYPE_THREAD_DISPATCH_QUEUE_LABEL, NUL included, at most.
inline constexpr std::size_t longest_dispatch_queue_label = 64;
/// STACKSHOT_KCTYPE_THREAD_POLICY_VERSION: that of the layout of ths_requested_policy and
/// ths_effective_policy (THREAD_POLICY_INTERNAL_STRUCT_VERSION).
inline constexpr std::uint32_t thread_policy_version = 7;

/// STACKSHOT_KCTYPE_TASK_SNAPSHOT. Times in absolute time, sizes in bytes.
struct task_snapshot_v2 {
    std::uint64_t ts_unique_pid;
    std::uint64_t ts_ss_flags;
    std::uint64_t ts_user_time_in_terminated_threads;
    std::uint64_t ts_system_time_in_terminated_threads;
    std::uint64_t ts_p_start_sec;
    std::uint64_t ts_task_size;
    std::uint64_t ts_max_resident_size;
    std::uint32_t ts_suspend_count;
    std::uint32_t ts_faults;
    std::uint32_t ts_pageins;
    std::uint32_t ts_cow_faults;
    std::uint32_t ts_was_throttled;
    std::uint32_t ts_did_throttle;
    std::uint32_t ts_latency_qos;
    std::int32_t ts_pid;
    char ts_p_comm[32];
};
static_assert(sizeof(task_snapshot_v2) == 120);

/// STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT: a task in teardown.
struct [[gnu::packed]] transitioning_task_snapshot {
    std::uint64_t tts_unique_pid;
    std::uint64_t tts_ss_flags;
    std::uint64_t tts_transition_type;
    std::int32_t tts_pid;
    char tts_p_comm[32];
};
static_assert(sizeof(transitioning_task_snapshot) == 60);

/// STACKSHOT_KCTYPE_TASK_DELTA_SNAPSHOT: a task nothing of which has run since. Times in absolute
/// time, sizes in bytes.
struct [[gnu::packed]] task_delta_snapshot_v2 {
    std::uint64_t tds_unique_pid;
    std::uint64_t tds_ss_flags;
    std::uint64_t tds_user_time_in_terminated_threads;
    std::uint64_t tds_system_time_in_terminated_threads;
    std::uint64_t tds_task_size;
    std::uint64_t tds_max_resident_size;
    std::uint32_t tds_suspend_count;
    std::uint32_t tds_faults;
    std::uint32_t tds_pageins;
    std::uint32_t tds_cow_faults;
    std::uint32_t tds_was_throttled;
    std::uint32_t tds_did_throttle;
    std::uint32_t tds_latency_qos;
};
static_assert(sizeof(task_delta_snapshot_v2) == 76);

/// Element of STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT: a thread that has not run since. Times in
/// absolute time.
struct thread_delta_snapshot_v3 {
    std::uint64_t tds_thread_id;
    std::uint64_t tds_voucher_identifier;
    std::uint64_t tds_ss_flags;
    std::uint64_t tds_last_made_runnable_time;
    std::uint32_t tds_state;
    std::uint32_t tds_sched_flags;
    std::int16_t tds_base_priority;
    std::int16_t tds_sched_priority;
    std::uint8_t tds_eqos;
    std::uint8_t tds_rqos;
    std::uint8_t tds_rqos_override;
    std::uint8_t tds_io_tier;
    std::uint64_t tds_requested_policy;
    std::uint64_t tds_effective_policy;
};
static_assert(sizeof(thread_delta_snapshot_v3) == 64);

/// STACKSHOT_KCTYPE_THREAD_SNAPSHOT. Times in absolute time.
struct thread_snapshot_v4 {
    std::uint64_t ths_thread_id;
    std::uint64_t ths_wait_event;
    std::uint64_t ths_continuation;
    std::uint64_t ths_total_syscalls;
    std::uint64_t ths_voucher_identifier;
    std::uint64_t ths_dqserialnum;
    std::uint64_t ths_user_time;
    std::uint64_t ths_sys_time;
    std::uint64_t ths_ss_flags;
    std::uint64_t ths_last_run_time;
    std::uint64_t ths_last_made_runnable_time;
    std::uint32_t ths_state;
    std::uint32_t ths_sched_flags;
    std::int16_t ths_base_priority;
    std::int16_t ths_sched_priority;
    std::uint8_t ths_eqos;
    std::uint8_t ths_rqos;
    std::uint8_t ths_rqos_override;
    std::uint8_t ths_io_tier;
    std::uint64_t ths_thread_t;
    std::uint64_t ths_requested_policy;
    std::uint64_t ths_effective_policy;
};
static_assert(sizeof(thread_snapshot_v4) == 128);

/// Payload size of STACKSHOT_KCTYPE_THREAD_NAME: always this many bytes, NUL included.
inline constexpr std::uint32_t thread_name_size = 64;

/// Element of STACKSHOT_KCTYPE_KERN_STACKLR64 and STACKSHOT_KCTYPE_USER_STACKLR64.
struct stack_snapshot_stacklr64 {
    std::uint64_t lr;
};
static_assert(sizeof(stack_snapshot_stacklr64) == 8);

/// STACKSHOT_KCTYPE_CPU_TIMES, in microseconds.
struct stackshot_cpu_times_v2 {
    std::uint64_t user_usec;
    std::uint64_t system_usec;
    std::uint64_t runnable_usec;
};
static_assert(sizeof(stackshot_cpu_times_v2) == 24);

/// STACKSHOT_KCTYPE_STACKSHOT_DURATION, in absolute time.
struct stackshot_duration_v2 {
    std::uint64_t stackshot_duration;
    std::uint64_t stackshot_duration_outer;
    std::uint64_t stackshot_duration_prior;
};
static_assert(sizeof(stackshot_duration_v2) == 24);

/// Element of STACKSHOT_KCTYPE_THREAD_WAITINFO: what a waiting thread waits for. The first 25 bytes
/// are stackshot_thread_waitinfo.
struct [[gnu::packed]] stackshot_thread_waitinfo_v2 {
    /// By the type: a thread id, a pid, a port name or address; 0 if nobody or not known; or one of
    /// STACKSHOT_WAITOWNER_*.
    std::uint64_t owner;
    std::uint64_t waiter;   ///< thread id
    std::uint64_t context;  ///< address or id of what is waited for; 0: none
    std::uint8_t wait_type;
    std::int16_t portlabel_id;
    std::uint32_t wait_flags;
};
static_assert(sizeof(stackshot_thread_waitinfo_v2) == 31);

/// Element of STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO: whom a waiting thread's turnstile pushes at
/// its far end. The first 26 bytes are stackshot_thread_turnstileinfo.
struct [[gnu::packed]] stackshot_thread_turnstileinfo_v2 {
    std::uint64_t waiter;             ///< thread id
    std::uint64_t turnstile_context;  ///< by the flags: thread id, pid or work queue address
    std::uint8_t turnstile_priority;
    std::uint8_t number_of_hops;  ///< turnstiles passed, the first one included
    std::uint64_t turnstile_flags;
    std::int16_t portlabel_id;
};
static_assert(sizeof(stackshot_thread_turnstileinfo_v2) == 28);

/// STACKSHOT_KCTYPE_PORTLABEL.
struct [[gnu::packed]] portlabel_info {
    std::int16_t portlabel_id;
    std::uint16_t portlabel_flags;
    std::uint8_t portlabel_domain;
};
static_assert(sizeof(portlabel_info) == 5);

/// Element of STACKSHOT_KCTYPE_LATENCY_INFO_CPU. Times in absolute time, sizes in bytes.
struct stackshot_latency_cpu {
    std::int32_t cpu_number;
    std::int32_t cluster_type;
    std::uint64_t init_latency_mt;
    std::uint64_t workqueue_latency_mt;
    std::uint64_t total_latency_mt;
    std::uint64_t total_cycles;
    std::uint64_t total_instrs;
    std::uint64_t tasks_processed;
    std::uint64_t threads_processed;
    std::uint64_t faulting_time_mt;
    std::uint64_t total_buf;
    std::uint64_t intercluster_buf_used;
};
static_assert(sizeof(stackshot_latency_cpu) == 88);

/// STACKSHOT_KCTYPE_LATENCY_INFO. Times in absolute time, sizes in bytes.
struct stackshot_latency_collection_v2 {
    std::uint64_t latency_version;
    std::uint64_t setup_latency_mt;
    std::uint64_t total_task_iteration_latency_mt;
    std::uint64_t total_terminated_task_iteration_latency_mt;
    std::uint64_t task_queue_building_latency_mt;
    std::uint64_t terminated_task_queue_building_latency_mt;
    std::uint64_t cpu_wait_latency_mt;
    std::int32_t main_cpu_number;
    std::int32_t calling_cpu_number;
    std::uint64_t buffer_size;
    std::uint64_t buffer_used;
    std::uint64_t buffer_overhead;
    std::uint64_t buffer_count;
};
static_assert(sizeof(stackshot_latency_collection_v2) == 96);

/// STACKSHOT_KCTYPE_LATENCY_INFO_TASK, in absolute time.
struct stackshot_latency_task {
    std::uint64_t task_uniqueid;
    std::uint64_t setup_latency;
    std::uint64_t task_thread_count_loop_latency;
    std::uint64_t task_thread_data_loop_latency;
    std::uint64_t cur_tsnap_latency;
    std::uint64_t pmap_latency;
    std::uint64_t bsd_proc_ids_latency;
    std::uint64_t misc_latency;
    std::uint64_t misc2_latency;
    std::uint64_t end_latency;
};
static_assert(sizeof(stackshot_latency_task) == 80);

/// STACKSHOT_KCTYPE_LATENCY_INFO_THREAD, in absolute time.
struct stackshot_latency_thread {
    std::uint64_t thread_id;
    std::uint64_t cur_thsnap1_latency;
    std::uint64_t dispatch_serial_latency;
    std::uint64_t dispatch_label_latency;
    std::uint64_t cur_thsnap2_latency;
    std::uint64_t thread_name_latency;
    std::uint64_t sur_times_latency;
    std::uint64_t user_stack_latency;
    std::uint64_t kernel_stack_latency;
    std::uint64_t misc_latency;
};
static_assert(sizeof(stackshot_latency_thread) == 80);

/// Value of the described u64 "system_state_flags" and bits 0-1 of the ss_flags below.
inline constexpr std::uint64_t kUser64_p = 0x1;
inline constexpr std::uint64_t kKernel64_p = 0x2;

// task_snapshot_v2::ts_ss_flags.
inline constexpr std::uint64_t kTaskRsrcFlagged = 0x4;
inline constexpr std::uint64_t kTerminatedSnapshot = 0x8;
inline constexpr std::uint64_t kPidSuspended = 0x10;
inline constexpr std::uint64_t kFrozen = 0x20;
inline constexpr std::uint64_t kTaskDarwinBG = 0x40;
inline constexpr std::uint64_t kTaskExtDarwinBG = 0x80;
inline constexpr std::uint64_t kTaskVisVisible = 0x100;
inline constexpr std::uint64_t kTaskVisNonvisible = 0x200;
inline constexpr std::uint64_t kTaskIsForeground = 0x400;
inline constexpr std::uint64_t kTaskIsBoosted = 0x800;
inline constexpr std::uint64_t kTaskIsSuppressed = 0x1000;
inline constexpr std::uint64_t kTaskIsTimerThrottled = 0x2000;
inline constexpr std::uint64_t kTaskIsImpDonor = 0x4000;
inline constexpr std::uint64_t kTaskIsLiveImpDonor = 0x8000;
inline constexpr std::uint64_t kTaskIsDirty = 0x10000;
inline constexpr std::uint64_t kTaskWqExceededConstrainedThreadLimit = 0x20000;
inline constexpr std::uint64_t kTaskWqExceededTotalThreadLimit = 0x40000;
inline constexpr std::uint64_t kTaskWqFlagsAvailable = 0x80000;
inline constexpr std::uint64_t kTaskUUIDInfoFaultedIn = 0x100000;
inline constexpr std::uint64_t kTaskUUIDInfoMissing = 0x200000;
inline constexpr std::uint64_t kTaskUUIDInfoTriedFault = 0x400000;
inline constexpr std::uint64_t kTaskSharedRegionInfoUnavailable = 0x800000;
inline constexpr std::uint64_t kTaskTALEngaged = 0x1000000;
inline constexpr std::uint64_t kTaskIsDirtyTracked = 0x4000000;
inline constexpr std::uint64_t kTaskAllowIdleExit = 0x8000000;
inline constexpr std::uint64_t kTaskIsTranslated = 0x10000000;
inline constexpr std::uint64_t kTaskSharedRegionNone = 0x20000000;
inline constexpr std::uint64_t kTaskSharedRegionSystem = 0x40000000;
inline constexpr std::uint64_t kTaskSharedRegionOther = 0x80000000;
inline constexpr std::uint64_t kTaskDyldCompactInfoNone = 0x100000000;
inline constexpr std::uint64_t kTaskDyldCompactInfoTooBig = 0x200000000;
inline constexpr std::uint64_t kTaskDyldCompactInfoFaultedIn = 0x400000000;
inline constexpr std::uint64_t kTaskDyldCompactInfoMissing = 0x800000000;
inline constexpr std::uint64_t kTaskDyldCompactInfoTriedFault = 0x1000000000;
inline constexpr std::uint64_t kTaskWqExceededCooperativeThreadLimit = 0x2000000000;
inline constexpr std::uint64_t kTaskWqExceededActiveConstrainedThreadLimit = 0x4000000000;

// transitioning_task_snapshot::tts_transition_type.
inline constexpr std::uint64_t kTaskIsTerminated = 0x1;

// thread_snapshot_v4::ths_ss_flags.
inline constexpr std::uint64_t kHasDispatchSerial = 0x4;
inline constexpr std::uint64_t kStacksPCOnly = 0x8;
inline constexpr std::uint64_t kThreadDarwinBG = 0x10;
inline constexpr std::uint64_t kThreadIOPassive = 0x20;
inline constexpr std::uint64_t kThreadSuspended = 0x40;
inline constexpr std::uint64_t kThreadTruncatedBT = 0x80;
inline constexpr std::uint64_t kGlobalForcedIdle = 0x100;
inline constexpr std::uint64_t kThreadFaultedBT = 0x200;
inline constexpr std::uint64_t kThreadTriedFaultBT = 0x400;
inline constexpr std::uint64_t kThreadOnCore = 0x800;
inline constexpr std::uint64_t kThreadIdleWorker = 0x1000;
inline constexpr std::uint64_t kThreadMain = 0x2000;
inline constexpr std::uint64_t kThreadTruncKernBT = 0x4000;
inline constexpr std::uint64_t kThreadTruncUserBT = 0x8000;
inline constexpr std::uint64_t kThreadTruncUserAsyncBT = 0x10000;

// thread_group_snapshot_v3::tgs_flags.
inline constexpr std::uint64_t kThreadGroupEfficient = 0x1;
inline constexpr std::uint64_t kThreadGroupApplication = 0x2;
inline constexpr std::uint64_t kThreadGroupCritical = 0x4;
inline constexpr std::uint64_t kThreadGroupBestEffort = 0x8;
inline constexpr std::uint64_t kThreadGroupUIApplication = 0x100;
inline constexpr std::uint64_t kThreadGroupManaged = 0x200;
inline constexpr std::uint64_t kThreadGroupStrictTimers = 0x400;

// jetsam_coalition_snapshot::jcs_flags.
inline constexpr std::uint64_t kCoalitionTermRequested = 0x1;
inline constexpr std::uint64_t kCoalitionTerminated = 0x2;
inline constexpr std::uint64_t kCoalitionReaped = 0x4;
inline constexpr std::uint64_t kCoalitionPrivileged = 0x8;

// stackshot_thread_waitinfo_v2::wait_type.
inline constexpr std::uint8_t kThreadWaitNone = 0x00;
inline constexpr std::uint8_t kThreadWaitKernelMutex = 0x01;
inline constexpr std::uint8_t kThreadWaitPortReceive = 0x02;
inline constexpr std::uint8_t kThreadWaitPortSetReceive = 0x03;
inline constexpr std::uint8_t kThreadWaitPortSend = 0x04;
inline constexpr std::uint8_t kThreadWaitPortSendInTransit = 0x05;
inline constexpr std::uint8_t kThreadWaitSemaphore = 0x06;
inline constexpr std::uint8_t kThreadWaitKernelRWLockRead = 0x07;
inline constexpr std::uint8_t kThreadWaitKernelRWLockWrite = 0x08;
inline constexpr std::uint8_t kThreadWaitKernelRWLockUpgrade = 0x09;
inline constexpr std::uint8_t kThreadWaitUserLock = 0x0a;
inline constexpr std::uint8_t kThreadWaitPThreadMutex = 0x0b;
inline constexpr std::uint8_t kThreadWaitPThreadRWLockRead = 0x0c;
inline constexpr std::uint8_t kThreadWaitPThreadRWLockWrite = 0x0d;
inline constexpr std::uint8_t kThreadWaitPThreadCondVar = 0x0e;
inline constexpr std::uint8_t kThreadWaitParkedWorkQueue = 0x0f;
inline constexpr std::uint8_t kThreadWaitWorkloopSyncWait = 0x10;
inline constexpr std::uint8_t kThreadWaitOnProcess = 0x11;
inline constexpr std::uint8_t kThreadWaitSleepWithInheritor = 0x12;
inline constexpr std::uint8_t kThreadWaitEventlink = 0x13;
inline constexpr std::uint8_t kThreadWaitCompressor = 0x14;
inline constexpr std::uint8_t kThreadWaitParkedBoundWorkQueue = 0x15;
inline constexpr std::uint8_t kThreadWaitPageBusy = 0x16;
inline constexpr std::uint8_t kThreadWaitPagerInit = 0x17;
inline constexpr std::uint8_t kThreadWaitPagerReady = 0x18;
inline constexpr std::uint8_t kThreadWaitPagingActivity = 0x19;
inline constexpr std::uint8_t kThreadWaitMappingInProgress = 0x1a;
inline constexpr std::uint8_t kThreadWaitMemoryBlocked = 0x1b;
inline constexpr std::uint8_t kThreadWaitPagingInProgress = 0x1c;
inline constexpr std::uint8_t kThreadWaitPageInThrottle = 0x1d;
inline constexpr std::uint8_t kThreadWaitExclaveCore = 0x1e;
inline constexpr std::uint8_t kThreadWaitExclaveKit = 0x1f;

// stackshot_thread_waitinfo_v2::owner, where it is none of those that its type has.
inline constexpr std::uint64_t STACKSHOT_WAITOWNER_KERNEL = 0xfffffffffffffffe;
inline constexpr std::uint64_t STACKSHOT_WAITOWNER_PORT_LOCKED = 0xfffffffffffffffd;
inline constexpr std::uint64_t STACKSHOT_WAITOWNER_PSET_LOCKED = 0xfffffffffffffffc;
inline constexpr std::uint64_t STACKSHOT_WAITOWNER_INTRANSIT = 0xfffffffffffffffb;
inline constexpr std::uint64_t STACKSHOT_WAITOWNER_MTXSPIN = 0xfffffffffffffffa;
inline constexpr std::uint64_t STACKSHOT_WAITOWNER_THREQUESTED = 0xfffffffffffffff9;
inline constexpr std::uint64_t STACKSHOT_WAITOWNER_SUSPENDED = 0xfffffffffffffff8;

// stackshot_thread_waitinfo_v2::wait_flags.
inline constexpr std::uint32_t STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY = 0x1;

// stackshot_thread_turnstileinfo_v2::turnstile_flags.
inline constexpr std::uint64_t STACKSHOT_TURNSTILE_STATUS_UNKNOWN = 0x01;
inline constexpr std::uint64_t STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ = 0x02;
inline constexpr std::uint64_t STACKSHOT_TURNSTILE_STATUS_WORKQUEUE = 0x04;
inline constexpr std::uint64_t STACKSHOT_TURNSTILE_STATUS_THREAD = 0x08;
inline constexpr std::uint64_t STACKSHOT_TURNSTILE_STATUS_BLOCKED_ON_TASK = 0x10;
inline constexpr std::uint64_t STACKSHOT_TURNSTILE_STATUS_HELD_IPLOCK = 0x20;
inline constexpr std::uint64_t STACKSHOT_TURNSTILE_STATUS_SENDPORT = 0x40;
inline constexpr std::uint64_t STACKSHOT_TURNSTILE_STATUS_RECEIVEPORT = 0x80;

// The portlabel_id of both, and of portlabel_info.
inline constexpr std::int16_t STACKSHOT_PORTLABELID_NONE = 0;
inline constexpr std::int16_t STACKSHOT_PORTLABELID_MISSING = -1;

// portlabel_info::portlabel_flags.
inline constexpr std::uint16_t STACKSHOT_PORTLABEL_READFAILED = 0x1;
inline constexpr std::uint16_t STACKSHOT_PORTLABEL_THROTTLED = 0x2;

// thread_snapshot_v4::ths_state.
inline constexpr std::uint32_t SS_TH_WAIT = 0x01;
inline constexpr std::uint32_t SS_TH_SUSP = 0x02;
inline constexpr std::uint32_t SS_TH_RUN = 0x04;
inline constexpr std::uint32_t SS_TH_UNINT = 0x08;
inline constexpr std::uint32_t SS_TH_TERMINATE = 0x10;
inline constexpr std::uint32_t SS_TH_TERMINATE2 = 0x20;
inline constexpr std::uint32_t SS_TH_WAIT_REPORT = 0x40;
inline constexpr std::uint32_t SS_TH_IDLE = 0x80;

}  // namespace kcdata
