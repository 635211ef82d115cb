#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"
#include "stackshot/request.hpp"
#include "stackshot/system.hpp"

namespace stackshot {

/// What a panic wants to know: XNU's flags for it on ARM, as far as there can be anything to record
/// for them.
inline constexpr std::uint64_t panic_flags =
    kcdata::STACKSHOT_KCDATA_FORMAT | kcdata::STACKSHOT_FROM_PANIC | kcdata::STACKSHOT_DO_COMPRESS |
    kcdata::STACKSHOT_SAVE_LOADINFO | kcdata::STACKSHOT_GET_GLOBAL_MEM_STATS |
    kcdata::STACKSHOT_THREAD_WAITINFO | kcdata::STACKSHOT_DISABLE_LATENCY_INFO |
    kcdata::STACKSHOT_NO_IO_STATS;

/// Bytes to reserve for the capture in a panic if nothing else is said: 1/64 of memory, but not
/// more than the largest ordinary capture may have, and 1 MiB at least, which is XNU's size.
std::size_t panic_memory_size(const SystemFacts& facts);

/// A capture taken in a panic.
struct PanicCapture {
    /// Finished kcdata, in the memory that was given.
    std::span<const std::byte> data{};
    /// What it was taken with in the end.
    std::uint64_t flags = 0;
    std::uint32_t tries = 0;
    std::uint64_t tasks = 0, threads = 0;
};

/// Captures a system that is stopped for good, in the second context that XNU has for this: its
/// own collection, alone on the calling CPU, in `memory` (64-byte aligned) and nothing else, so
/// that it does not matter whom the panic found holding what, an ordinary capture included.
///
/// Compressed with panic_flags. If that cannot be done in the memory, once more as plain kcdata,
/// which may have all of it, and then, as XNU on x86, only with the threads that have a kernel
/// stack. KERN_INSUFFICIENT_BUFFER_SIZE: even that does not fit. KERN_FAILURE: the system's lists
/// are corrupt.
kcdata::Result<PanicCapture> take_panic_capture(System& system, Quiesced& quiesced,
                                                std::span<std::byte> memory);

}  // namespace stackshot
