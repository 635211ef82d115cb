#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"
#include "stackshot/capture.hpp"

namespace stackshot {

/// What only the caller of a collection knows and its buffer tells.
struct AssemblyFacts {
    std::uint32_t tries = 1;           ///< this attempt's number
    std::uint64_t prior_duration = 0;  ///< absolute time the attempts before spent in the trap
    std::uint64_t outer_begin = 0;     ///< absolute time before this attempt's preflight
};

/// Finished kcdata: `size` bytes at the start of `buffer`.
struct AssembledBuffer {
    std::span<std::byte> buffer{};
    std::size_t size = 0;
};

/// Makes one kcdata buffer of a collection that was concluded without error: the records in front
/// of the tasks, the tasks in the order of the task list, their counts, the records of
/// SystemFacts::post_trap_producers, those about the capture itself, BUFFER_END.
/// Thread context, interrupts on; or in a panic, a single-threaded one.
///
/// A single-threaded collection's memory becomes the buffer, the whole of it. For a parallel one, a
/// buffer just large enough is allocated, and belongs to the caller.
/// KERN_INSUFFICIENT_BUFFER_SIZE: no room for the records behind the tasks.
/// KERN_RESOURCE_SHORTAGE: no memory for the buffer. Any error of a producer.
kcdata::Result<AssembledBuffer> assemble(System& system, Collection& collection,
                                         const AssemblyFacts& facts);

/// The same as a compressed buffer, in memory that was allocated before the trap: `buffer`, whose
/// beginning becomes the result, and compression_memory_size() bytes for zlib.
/// KERN_INSUFFICIENT_BUFFER_SIZE: `buffer` is too small.
kcdata::Result<AssembledBuffer> assemble_compressed(System& system, Collection& collection,
                                                    const AssemblyFacts& facts,
                                                    std::span<std::byte> buffer,
                                                    std::span<std::byte> zlib_memory);
std::size_t compression_memory_size();

}  // namespace stackshot
