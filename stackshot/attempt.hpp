#pragma once

#include <cstddef>
#include <span>

#include "kcdata/result.hpp"
#include "stackshot/assembly.hpp"
#include "stackshot/capture.hpp"
#include "stackshot/system.hpp"

namespace stackshot {

/// One attempt at a capture: its memory, and the collection in it. Frees what it still holds when
/// it goes. Thread context, interrupts on; only the collection is used inside the trap.
class Attempt {
  public:
    explicit Attempt(System& system) : system_(system) {}
    ~Attempt();
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

    /// Allocates `size` bytes to collect into, as many to compress into if the request wants that,
    /// and the collection, and has the system prepare its scratch memory. Once. `request` and
    /// `estimate` are copied. KERN_RESOURCE_SHORTAGE: no memory.
    kcdata::kern_return prepare(const Request& request, const Estimate& estimate, std::size_t size,
                                Mode mode);
    /// Requires prepare() to have succeeded.
    Collection& collection() { return *collection_; }
    /// After the trap: concludes the collection and makes the finished buffer, which then belongs
    /// to the caller. Once. The errors are those of Collection::conclude and assemble().
    kcdata::Result<AssembledBuffer> assemble(const AssemblyFacts& facts);
    /// Most bytes that were allocated for the attempt at a time, the finished buffer included.
    std::size_t peak_memory() const { return peak_memory_; }

  private:
    System& system_;
    std::span<std::byte> memory_{};
    /// For STACKSHOT_DO_COMPRESS: what the buffer is made in.
    std::span<std::byte> compressed_{};
    std::span<std::byte> zlib_memory_{};
    std::span<std::byte> collection_memory_{};
    bool scratch_ready_ = false;
    Collection* collection_ = nullptr;
    std::size_t peak_memory_ = 0;
};

}  // namespace stackshot
