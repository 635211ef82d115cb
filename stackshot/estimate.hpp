#pragma once

#include <cstddef>
#include <cstdint>

#include "stackshot/request.hpp"
#include "stackshot/system.hpp"

namespace stackshot {

/// What a capture is sized by, in bytes unless said otherwise.
struct Estimate {
    /// For the collection: records, queue, stack buffers. A multiple of the page size; not limited
    /// to max_tracebuf_size.
    std::size_t size = 0;
    /// Percent that `size` was enlarged by.
    std::uint32_t adj = 0;
    /// Records of a task with an average number of threads: what a new chunk has at least.
    std::size_t smallest_chunk = 0;
    /// Tasks the work queues have room for.
    std::size_t queue_capacity = 0;
    /// Threads it was made for.
    std::size_t threads = 0;
};

/// The largest buffer a capture may use: 8 MiB, or 1 MiB for each GiB of memory if that is more,
/// or what a boot argument says.
std::size_t max_tracebuf_size(const SystemFacts& facts);

/// Sizes a capture of a system with so many tasks and threads. XNU's scheme, with the sizes of the
/// records that are written here.
Estimate estimate_stackshot(const SystemFacts& facts, std::size_t tasks, std::size_t threads,
                            const Request& request);

}  // namespace stackshot
