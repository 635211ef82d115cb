#include "stackshot/arena.hpp"

#include <algorithm>
#include <new>

namespace stackshot {

void Arena::reset(System& system, const CaptureState& state, std::span<std::byte> memory,
                  std::span<const std::uint32_t> cpus) {
    system_ = &system;
    state_ = &state;
    pool_count_ = static_cast<std::uint32_t>(std::min<std::size_t>(cpus.size(), max_clusters));
    std::uint64_t cpus_left = 0;
    for (std::uint32_t cluster = 0; cluster < pool_count_; ++cluster)
        cpus_left += cpus[cluster];

    for (std::uint32_t cluster = 0; cluster < pool_count_; ++cluster) {
        Pool& pool = pools_[cluster];
        // The last cluster that has CPUs gets all that is left, rounding included.
        const std::size_t share =
            cpus[cluster] == 0 ? 0 : memory.size() / cpus_left * cpus[cluster];
        const std::size_t size =
            cpus[cluster] == cpus_left ? memory.size() : share / granularity * granularity;
        pool.base = memory.data();
        pool.size = size / granularity * granularity;
        pool.used.store(0, std::memory_order_relaxed);
        pool.free = nullptr;
        pool.freed = 0;
        memory = memory.subspan(size);
        cpus_left -= cpus[cluster];
        if (cpus_left == 0)
            memory = {};
    }
}

std::span<std::byte> Arena::allocate(std::uint32_t cluster, std::size_t size) {
    if (size == 0 || size > SIZE_MAX - granularity)
        return {};
    size = (size + granularity - 1) / granularity * granularity;
    for (std::uint32_t turn = 0; turn < pool_count_; ++turn) {
        Pool& pool = pools_[(cluster + turn) % pool_count_];
        if (auto memory = bump(pool, size); !memory.empty())
            return memory;
        if (auto memory = best_fit(pool, size); !memory.empty())
            return memory;
    }
    return {};
}

std::span<std::byte> Arena::bump(Pool& pool, std::size_t size) {
    // Relaxed: the bytes themselves were there before the arena was shared, and nobody else has
    // touched these.
    std::size_t used = pool.used.load(std::memory_order_relaxed);
    do {
        if (size > pool.size - used)
            return {};
    } while (!pool.used.compare_exchange_weak(used, used + size, std::memory_order_relaxed));
    return {pool.base + used, size};
}

std::span<std::byte> Arena::best_fit(Pool& pool, std::size_t size) {
    if (!pool.lock.lock(*system_, *state_))
        return {};
    FreeBlock* best = nullptr;
    FreeBlock* before_best = nullptr;
    FreeBlock* before = nullptr;
    for (FreeBlock* block = pool.free; block != nullptr; before = block, block = block->next) {
        if (block->size >= size && (best == nullptr || block->size < best->size)) {
            best = block;
            before_best = before;
        }
    }
    std::span<std::byte> memory;
    if (best != nullptr) {
        memory = {reinterpret_cast<std::byte*>(best), best->size};
        FreeBlock* next = best->next;
        if (best->size - size >= smallest_free_block) {
            const std::size_t rest = best->size - size;
            memory = memory.first(size);
            next = new (memory.data() + size) FreeBlock{next, rest};
        }
        if (before_best != nullptr)
            before_best->next = next;
        else
            pool.free = next;
        pool.freed = pool.freed - memory.size();
    }
    pool.lock.unlock(*system_);
    return memory;
}

void Arena::give_back(std::uint32_t cluster, std::span<std::byte> memory) {
    const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(memory.data()) % granularity;
    if (misaligned != 0)
        memory = memory.subspan(std::min(memory.size(), granularity - misaligned));
    memory = memory.first(memory.size() / granularity * granularity);
    if (memory.size() < smallest_free_block || pool_count_ == 0)
        return;
    Pool& pool = pools_[cluster % pool_count_];
    if (!pool.lock.lock(*system_, *state_))
        return;
    pool.free = new (memory.data()) FreeBlock{pool.free, memory.size()};
    pool.freed = pool.freed + memory.size();
    pool.lock.unlock(*system_);
}

Arena::Usage Arena::usage() const {
    Usage usage;
    for (const Pool& pool : std::span(pools_).first(pool_count_)) {
        usage.size += pool.size;
        usage.used += pool.used.load(std::memory_order_relaxed);
        usage.freed += pool.freed;
        usage.pools += pool.size != 0;
    }
    return usage;
}

bool Arena::owns(std::uint32_t cluster, std::span<const std::byte> memory) const {
    if (cluster >= pool_count_)
        return false;
    const Pool& pool = pools_[cluster];
    return memory.data() >= pool.base && memory.data() < pool.base + pool.size;
}

}  // namespace stackshot
