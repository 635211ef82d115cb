#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "stackshot/collection_memory.hpp"
#include "stackshot/port_label.hpp"
#include "stackshot/system.hpp"

namespace stackshot {

/// A thread that waits, and for what.
struct ThreadWait {
    std::uint64_t thread_id = 0;
    WaitFacts facts{};
    /// Of facts.port_label and facts.turnstile_port_label.
    const PortLabel* label = nullptr;
    const PortLabel* turnstile_label = nullptr;
};

/// What one CPU finds of waiting threads, one behind the other: how many a task has, and so how
/// long its arrays are, is known only when all its threads were looked at.
class WaitLog {
  public:
    struct Block {
        static constexpr std::size_t capacity = 32;
        Block* next = nullptr;
        std::array<ThreadWait, capacity> waits{};
    };
    /// What was added between two calls.
    struct Range {
        const Block* block = nullptr;
        std::size_t index = 0;  ///< of the first one in its block
        std::size_t count = 0;

        /// Calls visit() for each of them, in order.
        template <typename Visit>
        void for_each(Visit visit) const {
            const Block* from = block;
            for (std::size_t n = 0, at = index; n < count; ++n, ++at) {
                if (at == Block::capacity) {
                    from = from->next;
                    at = 0;
                }
                visit(from->waits[at]);
            }
        }
    };

    /// `memory` outlives the log.
    explicit WaitLog(CollectionMemory& memory) : memory_(memory) {}
    WaitLog(const WaitLog&) = delete;
    WaitLog& operator=(const WaitLog&) = delete;

    /// The place of the next one, to be written and added; nullptr if there is no memory.
    ThreadWait* place() {
        if (used_ == Block::capacity && !extend())
            return nullptr;
        return &last_->waits[used_];
    }
    /// Adds what was written to place().
    void add() {
        if (range_.count++ == 0) {
            range_.block = last_;
            range_.index = used_;
        }
        ++used_;
    }
    /// What was added since the last call of it. Good as long as the memory, or up to rewind().
    Range finish() {
        const Range range = range_;
        range_ = {};
        return range;
    }
    /// Forgets everything, and begins again in the same memory.
    void rewind() {
        last_ = first_;
        used_ = first_ != nullptr ? 0 : Block::capacity;
        range_ = {};
    }

  private:
    bool extend() {
        Block* next = last_ != nullptr ? last_->next : nullptr;
        if (next == nullptr) {
            const auto room = memory_.allocate(sizeof(Block));
            if (room.size() < sizeof(Block))
                return false;
            next = new (room.data()) Block;
            (last_ == nullptr ? first_ : last_->next) = next;
        }
        last_ = next;
        used_ = 0;
        return true;
    }

    CollectionMemory& memory_;
    Block* first_ = nullptr;
    Block* last_ = nullptr;
    std::size_t used_ = Block::capacity;  ///< of the last block
    Range range_{};
};

}  // namespace stackshot
