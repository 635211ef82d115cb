#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "stackshot/atomic.hpp"
#include "stackshot/capture_lock.hpp"
#include "stackshot/capture_state.hpp"
#include "stackshot/system.hpp"

namespace stackshot {

/// The memory of one capture: a buffer allocated before the trap, cut into one pool for each
/// cluster by how many of its CPUs take part. Inside the trap a CPU allocates from its own
/// cluster's pool (a bump of an atomic, then that pool's list of chunk tails given back), and only
/// then from the others'. Memory is handed out as it is, not zeroed.
class Arena {
  public:
    /// Sizes are rounded up to this, and allocations aligned to it.
    static constexpr std::size_t granularity = 16;
    /// Smaller tails are not worth keeping.
    static constexpr std::size_t smallest_free_block = 64;

    /// Cuts `memory`, aligned to `granularity`. `cpus[n]` is the number of CPUs of cluster n that
    /// take part; a cluster without any gets no pool. Waits end when `state`, which outlives the
    /// arena's use, is PANICKED. Before any other CPU sees the arena.
    void reset(System& system, const CaptureState& state, std::span<std::byte> memory,
               std::span<const std::uint32_t> cpus);

    /// At least `size` bytes, or an empty span when no pool has them in one piece, or after a
    /// panic. Any CPU of the capture, at any time.
    std::span<std::byte> allocate(std::uint32_t cluster, std::size_t size);
    /// Takes back memory that came from allocate(), whole or a tail of it, into the pool of
    /// `cluster`, that is, of the CPU that frees it.
    void give_back(std::uint32_t cluster, std::span<std::byte> memory);

    /// What became of the memory. After the barrier.
    struct Usage {
        std::size_t size = 0;   ///< bytes in all
        std::size_t used = 0;   ///< thereof ever allocated
        std::size_t freed = 0;  ///< thereof given back, and not allocated again
        std::size_t pools = 0;
    };
    Usage usage() const;

    /// Whether `memory` lies in the part that was cut for `cluster`.
    bool owns(std::uint32_t cluster, std::span<const std::byte> memory) const;

  private:
    struct FreeBlock {
        FreeBlock* next;
        std::size_t size;
    };
    struct alignas(64) Pool {
        std::byte* base = nullptr;
        std::size_t size = 0;
        Atomic<std::size_t> used{0};
        CaptureLock lock;
        Published<FreeBlock*> free = nullptr;
        Published<std::size_t> freed = 0;
    };

    std::span<std::byte> bump(Pool& pool, std::size_t size);
    std::span<std::byte> best_fit(Pool& pool, std::size_t size);

    System* system_ = nullptr;
    const CaptureState* state_ = nullptr;
    std::uint32_t pool_count_ = 0;
    std::array<Pool, max_clusters> pools_{};
};

}  // namespace stackshot
