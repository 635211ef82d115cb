#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/writer.hpp"
#include "stackshot/arena.hpp"

namespace stackshot {

/// A piece of a chain of records: this header, then whole kcdata items. An item never spans chunks.
struct alignas(16) Chunk {
    Chunk* next = nullptr;
    std::size_t used = 0;  ///< bytes of items behind the header

    std::span<const std::byte> items() const {
        return {reinterpret_cast<const std::byte*>(this + 1), used};
    }
};

/// Bytes of items in the chain that starts with `head`.
std::size_t chain_size(const Chunk* head);

/// Makes one chain of records after the other, in chunks from an arena; for one CPU. The writer
/// begins without a chunk and asks for the first one with its first item.
class ChunkChain final : public kcdata::Extender {
  public:
    /// `smallest`: bytes a new chunk has at least, as long as there is memory for such chunks; then
    /// half of that, and so on.
    ChunkChain(Arena& arena, std::uint32_t cluster, std::size_t smallest)
        : arena_(arena), cluster_(cluster), smallest_(smallest) {}
    ChunkChain(const ChunkChain&) = delete;
    ChunkChain& operator=(const ChunkChain&) = delete;

    /// Begins an empty chain. Valid until finish() or the next start().
    kcdata::Writer& start();
    /// Ends the chain: gives the rest of the last chunk back to the arena. Returns the first chunk,
    /// nullptr if nothing was written.
    Chunk* finish();

    std::span<std::byte> next_chunk(std::size_t used, std::size_t needed) override;

    /// Bytes taken from the arena so far, less those given back; and how many of them came from
    /// other clusters' pools (tails included).
    std::size_t bytes_taken() const { return bytes_taken_; }
    std::size_t bytes_borrowed() const { return bytes_borrowed_; }

  private:
    void close_tail(std::size_t used);

    Arena& arena_;
    std::uint32_t cluster_;
    std::size_t smallest_;
    kcdata::Writer writer_{};
    Chunk* head_ = nullptr;
    Chunk* tail_ = nullptr;
    std::span<std::byte> tail_memory_{};
    std::size_t bytes_taken_ = 0;
    std::size_t bytes_borrowed_ = 0;
};

}  // namespace stackshot
