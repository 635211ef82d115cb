#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/list.hpp"
#include "kernel/spinlock.hpp"
#include "stackshot/publication.hpp"

namespace kernel {

/// A task's address map: which pages are seen at which addresses. No CPU translates by it: the
/// kernel reads and writes on the task's behalf. Thread context.
class VmMap final : public stackshot::CallerMap {
  public:
    constexpr VmMap() = default;
    ~VmMap();
    VmMap(const VmMap&) = delete;
    VmMap& operator=(const VmMap&) = delete;

    /// Zeroed memory of the map's own, in whole pages, to be read and written.
    /// KERN_INVALID_ARGUMENT: no size. KERN_RESOURCE_SHORTAGE, KERN_NO_SPACE.
    kcdata::Result<std::uint64_t> allocate(std::size_t size);
    /// Lets go of what allocate() or map() returned `address` for, and frees the pages that belong
    /// to the map. KERN_INVALID_ADDRESS: nothing begins there.
    kcdata::kern_return deallocate(std::uint64_t address);
    /// The `size` bytes at `address`, which lie in one mapping; empty if they do not. Good until it
    /// is let go of.
    std::span<const std::byte> view(std::uint64_t address, std::size_t size);
    std::size_t mappings();

    kcdata::kern_return copy_in(std::uint64_t address, std::span<std::byte> to) override;
    kcdata::kern_return copy_out(std::span<const std::byte> from, std::uint64_t address) override;
    kcdata::Result<std::uint64_t> map(std::span<std::byte> pages) override;
    void unmap(std::uint64_t address) override;
    void adopt(std::uint64_t address) override;

  private:
    /// Addresses the map may use, as a user map of 48 bits has them; nothing at 0.
    static constexpr std::uint64_t low = std::uint64_t{1} << 32;
    static constexpr std::uint64_t high = std::uint64_t{1} << 47;

    struct Entry {
        std::uint64_t address = 0;
        std::span<std::byte> pages{};
        bool writable = false;
        bool owned = false;  ///< the pages are freed with the entry
        ListLink<Entry> link{};

        std::uint64_t end() const { return address + pages.size(); }
    };
    using EntryList = List<Entry, &Entry::link>;

    kcdata::Result<std::uint64_t> enter(std::span<std::byte> pages, bool writable, bool owned);
    /// The bytes of [address, address + size) if one entry has all of them, with the lock held.
    std::span<std::byte> find(std::uint64_t address, std::size_t size, bool to_write);
    Entry* entry_at(std::uint64_t address);
    Entry* take(std::uint64_t address);

    SpinLock lock_{};
    EntryList entries_{};  ///< by address
    std::size_t count_ = 0;
};

}  // namespace kernel
