#pragma once

#include <cstddef>
#include <cstdint>

namespace kcdata {

// What a caller may ask of a stackshot: names and values as in osfmk/kern/debug.h.
inline constexpr std::uint64_t STACKSHOT_GET_DQ = 0x1;
inline constexpr std::uint64_t STACKSHOT_SAVE_LOADINFO = 0x2;
inline constexpr std::uint64_t STACKSHOT_GET_GLOBAL_MEM_STATS = 0x4;
inline constexpr std::uint64_t STACKSHOT_SAVE_KEXT_LOADINFO = 0x8;
inline constexpr std::uint64_t STACKSHOT_ACTIVE_KERNEL_THREADS_ONLY = 0x100;
inline constexpr std::uint64_t STACKSHOT_GET_BOOT_PROFILE = 0x200;
inline constexpr std::uint64_t STACKSHOT_DO_COMPRESS = 0x400;
inline constexpr std::uint64_t STACKSHOT_SAVE_IMP_DONATION_PIDS = 0x2000;
inline constexpr std::uint64_t STACKSHOT_SAVE_IN_KERNEL_BUFFER = 0x4000;
inline constexpr std::uint64_t STACKSHOT_RETRIEVE_EXISTING_BUFFER = 0x8000;
inline constexpr std::uint64_t STACKSHOT_KCDATA_FORMAT = 0x10000;
inline constexpr std::uint64_t STACKSHOT_ENABLE_BT_FAULTING = 0x20000;
inline constexpr std::uint64_t STACKSHOT_COLLECT_DELTA_SNAPSHOT = 0x40000;
inline constexpr std::uint64_t STACKSHOT_COLLECT_SHAREDCACHE_LAYOUT = 0x80000;
inline constexpr std::uint64_t STACKSHOT_TRYLOCK = 0x100000;
inline constexpr std::uint64_t STACKSHOT_ENABLE_UUID_FAULTING = 0x200000;
inline constexpr std::uint64_t STACKSHOT_FROM_PANIC = 0x400000;
inline constexpr std::uint64_t STACKSHOT_NO_IO_STATS = 0x800000;
inline constexpr std::uint64_t STACKSHOT_THREAD_WAITINFO = 0x1000000;
inline constexpr std::uint64_t STACKSHOT_THREAD_GROUP = 0x2000000;
inline constexpr std::uint64_t STACKSHOT_SAVE_JETSAM_COALITIONS = 0x4000000;
inline constexpr std::uint64_t STACKSHOT_INSTRS_CYCLES = 0x8000000;
inline constexpr std::uint64_t STACKSHOT_ASID = 0x10000000;
inline constexpr std::uint64_t STACKSHOT_PAGE_TABLES = 0x20000000;
inline constexpr std::uint64_t STACKSHOT_DISABLE_LATENCY_INFO = 0x40000000;
inline constexpr std::uint64_t STACKSHOT_SAVE_DYLD_COMPACTINFO = 0x80000000;
inline constexpr std::uint64_t STACKSHOT_INCLUDE_DRIVER_THREADS_IN_KERNEL = 0x100000000;
inline constexpr std::uint64_t STACKSHOT_EXCLAVES = 0x200000000;
inline constexpr std::uint64_t STACKSHOT_SKIP_EXCLAVES = 0x400000000;

/// The only version of stackshot_config there is.
inline constexpr std::uint32_t STACKSHOT_CONFIG_TYPE = 1;

/// The request as a caller hands it over (stackshot_config_t, LP64 layout). The padding must be
/// zero.
struct stackshot_config {
    std::int32_t sc_pid;  ///< only this process; -1 for all
    std::uint32_t sc_padding0;
    std::uint64_t sc_flags;            ///< STACKSHOT_* above
    std::uint64_t sc_delta_timestamp;  ///< absolute time; 0 unless a delta is asked for
    std::uint64_t sc_buffer;           ///< out: address of the result
    std::uint32_t sc_size;             ///< in: size hint in bytes; out: length of the result
    std::uint32_t sc_padding1;
    std::uint64_t sc_out_buffer_addr;  ///< where to store the address of the result
    std::uint64_t sc_out_size_addr;    ///< where to store its length
    std::uint64_t sc_pagetable_mask;   ///< levels, with STACKSHOT_PAGE_TABLES
};
static_assert(sizeof(stackshot_config) == 64);
static_assert(offsetof(stackshot_config, sc_pid) == 0);
static_assert(offsetof(stackshot_config, sc_flags) == 8);
static_assert(offsetof(stackshot_config, sc_delta_timestamp) == 16);
static_assert(offsetof(stackshot_config, sc_buffer) == 24);
static_assert(offsetof(stackshot_config, sc_size) == 32);
static_assert(offsetof(stackshot_config, sc_out_buffer_addr) == 40);
static_assert(offsetof(stackshot_config, sc_out_size_addr) == 48);
static_assert(offsetof(stackshot_config, sc_pagetable_mask) == 56);

}  // namespace kcdata
