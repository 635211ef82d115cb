#include "kcdata/names.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "kcdata/format.hpp"
#include "kcdata/records.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "kcdata/types.hpp"

namespace kcdata {

namespace {

// A name that the kernel uses too has its value from there.
#define NAME(name) \
    { #name, name }

// clang-format off
constexpr ValueName generic_snapshot_flags_names[] = {
    NAME(kUser64_p),
    NAME(kKernel64_p),
};
constexpr ValueName subtype_types_names[] = {
    {"KC_ST_CHAR", 0x1},
    {"KC_ST_INT8", 0x2},
    {"KC_ST_UINT8", 0x3},
    {"KC_ST_INT16", 0x4},
    {"KC_ST_UINT16", 0x5},
    {"KC_ST_INT32", 0x6},
    {"KC_ST_UINT32", 0x7},
    {"KC_ST_INT64", 0x8},
    {"KC_ST_UINT64", 0x9},
};
constexpr ValueName dyld_shared_cache_flags_names[] = {
    {"kSharedCacheSystemPrimary", 0x1},
    {"kSharedCacheDriverkit", 0x2},
    {"kSharedCacheAOT", 0x4},
};
constexpr ValueName task_snapshot_flags_names[] = {
    NAME(kTaskRsrcFlagged),
    NAME(kTerminatedSnapshot),
    NAME(kPidSuspended),
    NAME(kFrozen),
    NAME(kTaskDarwinBG),
    NAME(kTaskExtDarwinBG),
    NAME(kTaskVisVisible),
    NAME(kTaskVisNonvisible),
    NAME(kTaskIsForeground),
    NAME(kTaskIsBoosted),
    NAME(kTaskIsSuppressed),
    NAME(kTaskIsTimerThrottled),
    NAME(kTaskIsImpDonor),
    NAME(kTaskIsLiveImpDonor),
    NAME(kTaskIsDirty),
    NAME(kTaskWqExceededConstrainedThreadLimit),
    NAME(kTaskWqExceededTotalThreadLimit),
    NAME(kTaskWqFlagsAvailable),
    NAME(kTaskUUIDInfoFaultedIn),
    NAME(kTaskUUIDInfoMissing),
    NAME(kTaskUUIDInfoTriedFault),
    NAME(kTaskSharedRegionInfoUnavailable),
    NAME(kTaskTALEngaged),
    NAME(kTaskIsDirtyTracked),
    NAME(kTaskAllowIdleExit),
    NAME(kTaskIsTranslated),
    NAME(kTaskSharedRegionNone),
    NAME(kTaskSharedRegionSystem),
    NAME(kTaskSharedRegionOther),
    NAME(kTaskDyldCompactInfoNone),
    NAME(kTaskDyldCompactInfoTooBig),
    NAME(kTaskDyldCompactInfoFaultedIn),
    NAME(kTaskDyldCompactInfoMissing),
    NAME(kTaskDyldCompactInfoTriedFault),
    NAME(kTaskWqExceededCooperativeThreadLimit),
    NAME(kTaskWqExceededActiveConstrainedThreadLimit),
};
constexpr ValueName task_transition_type_names[] = {
    {"kTaskIsTerminated", 0x1},
};
constexpr ValueName thread_snapshot_flags_names[] = {
    NAME(kHasDispatchSerial),
    NAME(kStacksPCOnly),
    NAME(kThreadDarwinBG),
    NAME(kThreadIOPassive),
    NAME(kThreadSuspended),
    NAME(kThreadTruncatedBT),
    NAME(kGlobalForcedIdle),
    NAME(kThreadFaultedBT),
    NAME(kThreadTriedFaultBT),
    NAME(kThreadOnCore),
    NAME(kThreadIdleWorker),
    NAME(kThreadMain),
    NAME(kThreadTruncKernBT),
    NAME(kThreadTruncUserBT),
    NAME(kThreadTruncUserAsyncBT),
};
constexpr ValueName thread_group_flags_names[] = {
    {"kThreadGroupEfficient", 0x1},
    {"kThreadGroupApplication", 0x2},
    {"kThreadGroupUIApp", 0x2},
    {"kThreadGroupCritical", 0x4},
    {"kThreadGroupBestEffort", 0x8},
    {"kThreadGroupUIApplication", 0x100},
    {"kThreadGroupManaged", 0x200},
    {"kThreadGroupStrictTimers", 0x400},
};
constexpr ValueName coalition_flags_names[] = {
    {"kCoalitionTermRequested", 0x1},
    {"kCoalitionTerminated", 0x2},
    {"kCoalitionReaped", 0x4},
    {"kCoalitionPrivileged", 0x8},
};
constexpr ValueName thread_exclaves_flags_names[] = {
    {"kExclaveRPCActive", 0x1},
    {"kExclaveUpcallActive", 0x2},
    {"kExclaveSchedulerRequest", 0x4},
};
constexpr ValueName exclave_scresult_flags_names[] = {
    {"kExclaveScresultHaveIPCStack", 0x1},
};
constexpr ValueName exclave_ipcstackentry_flags_names[] = {
    {"kExclaveIpcStackEntryHaveInvocationID", 0x1},
    {"kExclaveIpcStackEntryHaveStack", 0x2},
};
constexpr ValueName exclave_addressspace_flags_names[] = {
    {"kExclaveAddressSpaceHaveSlide", 0x1},
};
constexpr ValueName exclave_textlayout_flags_names[] = {
    {"kExclaveTextLayoutLoadAddressesSynthetic", 0x1},
    {"kExclaveTextLayoutLoadAddressesUnslid", 0x2},
    {"kExclaveTextLayoutHasSharedCache", 0x4},
};
constexpr ValueName thread_snapshot_wait_flags_names[] = {
    NAME(kThreadWaitNone),
    NAME(kThreadWaitKernelMutex),
    NAME(kThreadWaitPortReceive),
    NAME(kThreadWaitPortSetReceive),
    NAME(kThreadWaitPortSend),
    NAME(kThreadWaitPortSendInTransit),
    NAME(kThreadWaitSemaphore),
    NAME(kThreadWaitKernelRWLockRead),
    NAME(kThreadWaitKernelRWLockWrite),
    NAME(kThreadWaitKernelRWLockUpgrade),
    NAME(kThreadWaitUserLock),
    NAME(kThreadWaitPThreadMutex),
    NAME(kThreadWaitPThreadRWLockRead),
    NAME(kThreadWaitPThreadRWLockWrite),
    NAME(kThreadWaitPThreadCondVar),
    NAME(kThreadWaitParkedWorkQueue),
    NAME(kThreadWaitWorkloopSyncWait),
    NAME(kThreadWaitOnProcess),
    NAME(kThreadWaitSleepWithInheritor),
    NAME(kThreadWaitEventlink),
    NAME(kThreadWaitCompressor),
    NAME(kThreadWaitParkedBoundWorkQueue),
    NAME(kThreadWaitPageBusy),
    NAME(kThreadWaitPagerInit),
    NAME(kThreadWaitPagerReady),
    NAME(kThreadWaitPagingActivity),
    NAME(kThreadWaitMappingInProgress),
    NAME(kThreadWaitMemoryBlocked),
    NAME(kThreadWaitPagingInProgress),
    NAME(kThreadWaitPageInThrottle),
    NAME(kThreadWaitExclaveCore),
    NAME(kThreadWaitExclaveKit),
};
constexpr ValueName thread_state_names[] = {
    NAME(SS_TH_WAIT),
    NAME(SS_TH_SUSP),
    NAME(SS_TH_RUN),
    NAME(SS_TH_UNINT),
    NAME(SS_TH_TERMINATE),
    NAME(SS_TH_TERMINATE2),
    NAME(SS_TH_IDLE),
};
constexpr ValueName turnstile_status_names[] = {
    NAME(STACKSHOT_TURNSTILE_STATUS_UNKNOWN),
    NAME(STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ),
    NAME(STACKSHOT_TURNSTILE_STATUS_WORKQUEUE),
    NAME(STACKSHOT_TURNSTILE_STATUS_THREAD),
    NAME(STACKSHOT_TURNSTILE_STATUS_BLOCKED_ON_TASK),
    NAME(STACKSHOT_TURNSTILE_STATUS_HELD_IPLOCK),
    NAME(STACKSHOT_TURNSTILE_STATUS_SENDPORT),
    NAME(STACKSHOT_TURNSTILE_STATUS_RECEIVEPORT),
};
constexpr ValueName waitinfo_flags_names[] = {
    NAME(STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY),
};
constexpr ValueName portlabel_flags_names[] = {
    NAME(STACKSHOT_PORTLABEL_READFAILED),
    NAME(STACKSHOT_PORTLABEL_THROTTLED),
};
constexpr ValueName kcs_flags_names[] = {
    {"KCS_SUBTYPE_FLAGS_NONE", 0x0},
    {"KCS_SUBTYPE_FLAGS_ARRAY", 0x1},
    {"KCS_SUBTYPE_FLAGS_STRUCT", 0x2},
    {"KCS_SUBTYPE_FLAGS_MERGE", 0x4},
};
constexpr ValueName btinfo_flags_names[] = {
    {"TASK_BTINFO_FLAG_BT_TRUNCATED", 0x1},
    {"TASK_BTINFO_FLAG_ASYNC_BT_TRUNCATED", 0x2},
    {"TASK_BTINFO_FLAG_TASK_TERMINATED", 0x4},
    {"TASK_BTINFO_FLAG_KCDATA_INCOMPLETE", 0x8},
};
constexpr ValueName item_flags_names[] = {
    NAME(KCDATA_FLAGS_STRUCT_PADDING_MASK),
    NAME(KCDATA_FLAGS_STRUCT_HAS_PADDING),
};
constexpr ValueName wait_owner_names[] = {
    NAME(STACKSHOT_WAITOWNER_SUSPENDED),
    NAME(STACKSHOT_WAITOWNER_THREQUESTED),
    NAME(STACKSHOT_WAITOWNER_MTXSPIN),
    NAME(STACKSHOT_WAITOWNER_INTRANSIT),
    NAME(STACKSHOT_WAITOWNER_PSET_LOCKED),
    NAME(STACKSHOT_WAITOWNER_PORT_LOCKED),
    NAME(STACKSHOT_WAITOWNER_KERNEL),
};
constexpr ValueName portlabel_id_names[] = {
    NAME(STACKSHOT_PORTLABELID_NONE),
    {"STACKSHOT_PORTLABELID_MISSING", 0xffffffffffffffff},
};
constexpr ValueName stackshot_flags_names[] = {
    NAME(STACKSHOT_GET_DQ),
    NAME(STACKSHOT_SAVE_LOADINFO),
    NAME(STACKSHOT_GET_GLOBAL_MEM_STATS),
    NAME(STACKSHOT_SAVE_KEXT_LOADINFO),
    NAME(STACKSHOT_ACTIVE_KERNEL_THREADS_ONLY),
    NAME(STACKSHOT_GET_BOOT_PROFILE),
    NAME(STACKSHOT_DO_COMPRESS),
    NAME(STACKSHOT_SAVE_IMP_DONATION_PIDS),
    NAME(STACKSHOT_SAVE_IN_KERNEL_BUFFER),
    NAME(STACKSHOT_RETRIEVE_EXISTING_BUFFER),
    NAME(STACKSHOT_KCDATA_FORMAT),
    NAME(STACKSHOT_ENABLE_BT_FAULTING),
    NAME(STACKSHOT_COLLECT_DELTA_SNAPSHOT),
    NAME(STACKSHOT_COLLECT_SHAREDCACHE_LAYOUT),
    NAME(STACKSHOT_TRYLOCK),
    NAME(STACKSHOT_ENABLE_UUID_FAULTING),
    NAME(STACKSHOT_FROM_PANIC),
    NAME(STACKSHOT_NO_IO_STATS),
    NAME(STACKSHOT_THREAD_WAITINFO),
    NAME(STACKSHOT_THREAD_GROUP),
    NAME(STACKSHOT_SAVE_JETSAM_COALITIONS),
    NAME(STACKSHOT_INSTRS_CYCLES),
    NAME(STACKSHOT_ASID),
    NAME(STACKSHOT_PAGE_TABLES),
    NAME(STACKSHOT_DISABLE_LATENCY_INFO),
    NAME(STACKSHOT_SAVE_DYLD_COMPACTINFO),
    NAME(STACKSHOT_INCLUDE_DRIVER_THREADS_IN_KERNEL),
    NAME(STACKSHOT_EXCLAVES),
    NAME(STACKSHOT_SKIP_EXCLAVES),
};
// clang-format on

#undef NAME

// Bits 0 and 1 of these fields are not of the set that the field is named after.
template <std::size_t size>
consteval auto with_generic_flags(const ValueName (&names)[size]) {
    std::array<ValueName, std::size(generic_snapshot_flags_names) + size> result{};
    std::copy(std::begin(generic_snapshot_flags_names), std::end(generic_snapshot_flags_names),
              result.begin());
    std::copy(std::begin(names), std::end(names),
              result.begin() + std::size(generic_snapshot_flags_names));
    return result;
}
constexpr auto task_ss_flags_names = with_generic_flags(task_snapshot_flags_names);
constexpr auto thread_ss_flags_names = with_generic_flags(thread_snapshot_flags_names);

using enum ValueNames::Kind;

// clang-format off
constexpr ValueNames generic_snapshot_flags{"generic_snapshot_flags", flags, generic_snapshot_flags_names};
constexpr ValueNames subtype_types{"KCDATA_SUBTYPE_TYPES", enumeration, subtype_types_names};
constexpr ValueNames dyld_shared_cache_flags{"dyld_shared_cache_flags", flags, dyld_shared_cache_flags_names};
constexpr ValueNames task_snapshot_flags{"task_snapshot_flags", flags, task_snapshot_flags_names};
constexpr ValueNames task_transition_type{"task_transition_type", enumeration, task_transition_type_names};
constexpr ValueNames thread_snapshot_flags{"thread_snapshot_flags", flags, thread_snapshot_flags_names};
constexpr ValueNames thread_group_flags{"thread_group_flags", flags, thread_group_flags_names};
constexpr ValueNames coalition_flags{"coalition_flags", flags, coalition_flags_names};
constexpr ValueNames thread_exclaves_flags{"thread_exclaves_flags", flags, thread_exclaves_flags_names};
constexpr ValueNames exclave_scresult_flags{"exclave_scresult_flags", flags, exclave_scresult_flags_names};
constexpr ValueNames exclave_ipcstackentry_flags{"exclave_ipcstackentry_flags", flags, exclave_ipcstackentry_flags_names};
constexpr ValueNames exclave_addressspace_flags{"exclave_addressspace_flags", flags, exclave_addressspace_flags_names};
constexpr ValueNames exclave_textlayout_flags{"exclave_textlayout_flags", flags, exclave_textlayout_flags_names};
constexpr ValueNames thread_snapshot_wait_flags{"thread_snapshot_wait_flags", enumeration, thread_snapshot_wait_flags_names};
constexpr ValueNames thread_state{"SS_TH (thread state)", flags, thread_state_names};
constexpr ValueNames turnstile_status{"turnstile status", flags, turnstile_status_names};
constexpr ValueNames waitinfo_flags{"waitinfo flags", flags, waitinfo_flags_names};
constexpr ValueNames portlabel_flags{"port label flags", flags, portlabel_flags_names};
constexpr ValueNames kcs_flags{"kcs_flags", flags, kcs_flags_names};
constexpr ValueNames btinfo_flags{"btinfo flags", flags, btinfo_flags_names};
constexpr ValueNames item_flags{"item flags", flags, item_flags_names};
constexpr ValueNames wait_owner{"special wait owner", enumeration, wait_owner_names};
constexpr ValueNames portlabel_id{"port label id", enumeration, portlabel_id_names};
constexpr ValueNames stackshot_flags{"stackshot_flags", flags, stackshot_flags_names};
constexpr ValueNames task_ss_flags{"", flags, task_ss_flags_names};
constexpr ValueNames thread_ss_flags{"", flags, thread_ss_flags_names};

constexpr ValueNames groups[] = {
    generic_snapshot_flags,
    subtype_types,
    dyld_shared_cache_flags,
    task_snapshot_flags,
    task_transition_type,
    thread_snapshot_flags,
    thread_group_flags,
    coalition_flags,
    thread_exclaves_flags,
    exclave_scresult_flags,
    exclave_ipcstackentry_flags,
    exclave_addressspace_flags,
    exclave_textlayout_flags,
    thread_snapshot_wait_flags,
    thread_state,
    turnstile_status,
    waitinfo_flags,
    portlabel_flags,
    kcs_flags,
    btinfo_flags,
    item_flags,
    wait_owner,
    portlabel_id,
    stackshot_flags,
};

struct FieldNames {
    std::uint32_t type;
    std::string_view field;
    const ValueNames* names;
};

/// By ascending type.
constexpr FieldNames fields[] = {
    {KCDATA_TYPE_TYPEDEFINTION, "kcs_flags", &kcs_flags},
    {KCDATA_TYPE_TYPEDEFINTION, "kcs_elem_type", &subtype_types},
    {STACKSHOT_KCTYPE_TASK_SNAPSHOT, "ts_ss_flags", &task_ss_flags},
    {STACKSHOT_KCTYPE_THREAD_SNAPSHOT, "ths_ss_flags", &thread_ss_flags},
    {STACKSHOT_KCTYPE_THREAD_SNAPSHOT, "ths_state", &thread_state},
    {STACKSHOT_KCTYPE_SHAREDCACHE_LOADINFO, "sharedCacheFlags", &dyld_shared_cache_flags},
    {STACKSHOT_KCTYPE_THREAD_WAITINFO, "owner", &wait_owner},
    {STACKSHOT_KCTYPE_THREAD_WAITINFO, "wait_type", &thread_snapshot_wait_flags},
    {STACKSHOT_KCTYPE_THREAD_WAITINFO, "portlabel_id", &portlabel_id},
    {STACKSHOT_KCTYPE_THREAD_WAITINFO, "wait_flags", &waitinfo_flags},
    {STACKSHOT_KCTYPE_THREAD_GROUP_SNAPSHOT, "tgs_flags", &thread_group_flags},
    {STACKSHOT_KCTYPE_JETSAM_COALITION_SNAPSHOT, "jcs_flags", &coalition_flags},
    {STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO, "turnstile_flags", &turnstile_status},
    {STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO, "portlabel_id", &portlabel_id},
    {STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT, "tts_ss_flags", &task_ss_flags},
    {STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT, "tts_transition_type", &task_transition_type},
    {STACKSHOT_KCTYPE_PORTLABEL, "portlabel_id", &portlabel_id},
    {STACKSHOT_KCTYPE_PORTLABEL, "portlabel_flags", &portlabel_flags},
    {STACKSHOT_KCTYPE_TASK_DELTA_SNAPSHOT, "tds_ss_flags", &task_ss_flags},
    {STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT, "tds_ss_flags", &thread_ss_flags},
    {STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT, "tds_state", &thread_state},
    {STACKSHOT_KCTYPE_SHAREDCACHE_INFO, "sharedCacheFlags", &dyld_shared_cache_flags},
    {STACKSHOT_KCTYPE_KERN_EXCLAVES_THREADINFO, "tei_flags", &thread_exclaves_flags},
    {STACKSHOT_KCTYPE_EXCLAVE_SCRESULT_INFO, "esc_flags", &exclave_scresult_flags},
    {STACKSHOT_KCTYPE_EXCLAVE_IPCSTACKENTRY_INFO, "eise_flags", &exclave_ipcstackentry_flags},
    {STACKSHOT_KCTYPE_EXCLAVE_ADDRESSSPACE_INFO, "eas_flags", &exclave_addressspace_flags},
    {STACKSHOT_KCTYPE_EXCLAVE_TEXTLAYOUT_INFO, "etl_flags", &exclave_textlayout_flags},
    {STACKSHOT_KCTYPE_KERN_EXCLAVES_CRASH_THREADINFO, "tcei_flags", &thread_exclaves_flags},
    {TASK_BTINFO_FLAGS, "value", &btinfo_flags},
};
// clang-format on
constexpr auto by_type = [](const FieldNames& a, const FieldNames& b) { return a.type < b.type; };
static_assert(std::is_sorted(std::begin(fields), std::end(fields), by_type));

}  // namespace

const ValueName* ValueNames::find(std::string_view name) const {
    const auto found = std::find_if(names.begin(), names.end(),
                                    [name](const ValueName& each) { return each.name == name; });
    return found != names.end() ? &*found : nullptr;
}

std::span<const ValueNames> value_name_groups() {
    return groups;
}

const ValueNames* find_value_names(std::string_view group) {
    const auto found =
        std::find_if(std::begin(groups), std::end(groups),
                     [group](const ValueNames& each) { return each.group == group; });
    return found != std::end(groups) ? found : nullptr;
}

const ValueNames* field_value_names(std::uint32_t type, std::string_view field) {
    const auto [first, last] = std::equal_range(std::begin(fields), std::end(fields),
                                                FieldNames{type, {}, nullptr}, by_type);
    const auto found =
        std::find_if(first, last, [field](const FieldNames& each) { return each.field == field; });
    return found != last ? found->names : nullptr;
}

const ValueNames* described_value_names(std::string_view description) {
    if (description == "system_state_flags")
        return &generic_snapshot_flags;
    if (description == "stackshot_in_flags" || description == "stackshot_out_flags")
        return &stackshot_flags;
    return nullptr;
}

}  // namespace kcdata
