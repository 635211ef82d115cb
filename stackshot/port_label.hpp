#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kcdata/records.hpp"
#include "kcdata/writer.hpp"
#include "stackshot/collection_memory.hpp"
#include "stackshot/system.hpp"

namespace stackshot {

/// A port label as one CPU found it.
struct PortLabel {
    PortLabelRef ref = PortLabelRef::none;
    PortLabelFacts facts{};
    const PortLabel* next = nullptr;  ///< in its bucket
};

/// The port labels one CPU finds, each read once, while the world stands still.
class PortLabelLog {
  public:
    /// `memory` outlives the log.
    explicit PortLabelLog(CollectionMemory& memory) : memory_(memory) {}
    PortLabelLog(const PortLabelLog&) = delete;
    PortLabelLog& operator=(const PortLabelLog&) = delete;

    /// The label, which is not PortLabelRef::none; nullptr if there is no memory. Good as long as
    /// the memory.
    const PortLabel* find(System& system, Quiesced& quiesced, PortLabelRef ref);

  private:
    static constexpr std::size_t bucket_count = 64;
    using Buckets = std::array<const PortLabel*, bucket_count>;

    CollectionMemory& memory_;
    /// Made for the first label; many captures have none.
    Buckets* buckets_ = nullptr;
};

/// The port labels of a capture and their ids, which are given out in the order of the tasks and
/// their waits, and so do not depend on who found them. Each task has records of the labels that
/// its own threads mention. XNU's table, with its capacity; one CPU at a time.
class PortLabelTable {
  public:
    static constexpr std::size_t capacity = 256;

    /// Nothing of the task that follows is mentioned yet.
    void begin_task();
    /// The id of `label`: STACKSHOT_PORTLABELID_NONE for nullptr, STACKSHOT_PORTLABELID_MISSING
    /// when there are more than `capacity`.
    std::int16_t mention(const PortLabel* label);
    /// Appends the containers of those that were mentioned since begin_task(), by id.
    kcdata::kern_return append_mentioned(kcdata::Writer& writer) const;
    /// Bytes that append_mentioned() appends at most after so many mentions.
    static std::size_t room(std::size_t mentions);

  private:
    static constexpr std::size_t bucket_count = 128;
    struct Entry {
        const PortLabel* label = nullptr;
        std::uint16_t next = 0;       ///< in its bucket, plus 1; 0: none
        std::uint8_t generation = 0;  ///< of the task that mentioned it last
    };

    std::array<Entry, capacity> entries_{};
    /// The first entry of each, plus 1; 0: none.
    std::array<std::uint16_t, bucket_count> buckets_{};
    std::uint16_t count_ = 0;
    std::uint16_t mentioned_ = 0;  ///< by this task, each once
    std::uint8_t generation_ = 0;
};

}  // namespace stackshot
