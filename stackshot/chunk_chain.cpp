#include "stackshot/chunk_chain.hpp"

#include <algorithm>
#include <new>

namespace stackshot {

std::size_t chain_size(const Chunk* head) {
    std::size_t size = 0;
    for (const Chunk* chunk = head; chunk != nullptr; chunk = chunk->next)
        size += chunk->used;
    return size;
}

kcdata::Writer& ChunkChain::start() {
    head_ = nullptr;
    tail_ = nullptr;
    tail_memory_ = {};
    writer_ = kcdata::Writer({}, this);
    return writer_;
}

Chunk* ChunkChain::finish() {
    close_tail(writer_.used());
    Chunk* head = head_;
    start();
    return head;
}

std::span<std::byte> ChunkChain::next_chunk(std::size_t used, std::size_t needed) {
    if (needed > SIZE_MAX - sizeof(Chunk))
        return {};
    // Before the tail is closed: the writer goes on in it if there is no memory.
    const std::size_t least = needed + sizeof(Chunk);
    std::size_t size = std::max(least, smallest_);
    auto memory = arena_.allocate(cluster_, size);
    // By halves: a chunk for each item costs more than the item.
    while (memory.empty() && size > least) {
        size = std::max(least, size / 2);
        memory = arena_.allocate(cluster_, size);
    }
    if (memory.empty())
        return {};
    bytes_taken_ += memory.size();
    if (!arena_.owns(cluster_, memory))
        bytes_borrowed_ += memory.size();
    close_tail(used);
    Chunk* chunk = new (memory.data()) Chunk;
    (tail_ == nullptr ? head_ : tail_->next) = chunk;
    tail_ = chunk;
    tail_memory_ = memory;
    return memory.subspan(sizeof(Chunk));
}

void ChunkChain::close_tail(std::size_t used) {
    if (tail_ == nullptr)
        return;
    tail_->used = used;
    const auto rest = tail_memory_.subspan(sizeof(Chunk) + used);
    arena_.give_back(cluster_, rest);
    if (rest.size() >= Arena::smallest_free_block)
        bytes_taken_ -= rest.size();
}

}  // namespace stackshot
