#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"

namespace stackshot {

/// The address map of a task that makes a request: its configuration is read from there, and the
/// result goes there. The kernel implements it. Thread context; may block.
class CallerMap {
  public:
    /// KERN_INVALID_ADDRESS: not all of it can be read, or written.
    virtual kcdata::kern_return copy_in(std::uint64_t address, std::span<std::byte> to) = 0;
    virtual kcdata::kern_return copy_out(std::span<const std::byte> from,
                                         std::uint64_t address) = 0;
    /// Maps whole pages of System::allocate(), to be read only, and returns where. They stay the
    /// kernel's. KERN_NO_SPACE: no room in the map. KERN_RESOURCE_SHORTAGE: no memory.
    virtual kcdata::Result<std::uint64_t> map(std::span<std::byte> pages) = 0;
    /// Takes away what map() mapped at `address`. The pages stay the kernel's.
    virtual void unmap(std::uint64_t address) = 0;
    /// The pages map() mapped at `address` belong to the map from now on, and are freed when it
    /// lets go of them. Cannot fail.
    virtual void adopt(std::uint64_t address) = 0;

  protected:
    ~CallerMap() = default;
};

/// Hands one finished buffer over to the caller of a request.
class Publication {
  public:
    /// `map`: the caller's; nullptr: the caller has none, so that nothing can be published.
    Publication(CallerMap* map, std::uint64_t out_buffer_address, std::uint64_t out_size_address)
        : map_(map), out_buffer_address_(out_buffer_address), out_size_address_(out_size_address) {}

    /// Maps `pages`, whose first `size` bytes are the result, into the caller's map, copies out the
    /// address, then the length (a u32). The pages belong to the caller then. If any of it fails
    /// the mapping is taken away again and the pages stay the kernel's; the address may have been
    /// copied out all the same: the caller has to honour the error.
    ///
    /// The errors are those of the map. KERN_INVALID_ADDRESS: there is no map.
    kcdata::kern_return publish(std::span<std::byte> pages, std::size_t size);
    /// Whether something was published.
    bool done() const { return done_; }

  private:
    kcdata::kern_return copy_out(std::uint64_t address, std::uint32_t size);

    CallerMap* map_;
    std::uint64_t out_buffer_address_;
    std::uint64_t out_size_address_;
    bool done_ = false;
};

}  // namespace stackshot
