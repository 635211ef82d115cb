#pragma once

#include <cstddef>
#include <span>

namespace stackshot {

/// Where a CPU keeps what it finds and somebody else makes records of, when all is found.
class CollectionMemory {
  public:
    /// At least `size` bytes, 8-byte aligned; empty if there are none. They stay as long as the
    /// collection. Inside a trap.
    virtual std::span<std::byte> allocate(std::size_t size) = 0;

  protected:
    ~CollectionMemory() = default;
};

}  // namespace stackshot
