#include "kernel/vm_map.hpp"

#include <cstring>

#include "kernel/heap.hpp"
#include "kernel/page_allocator.hpp"

namespace kernel {

using namespace kcdata;

VmMap::~VmMap() {
    while (Entry* const entry = entries_.pop_front()) {
        if (entry->owned)
            page_allocator().free(entry->pages);
        heap::destroy(entry);
    }
}

Result<std::uint64_t> VmMap::enter(std::span<std::byte> pages, bool writable, bool owned) {
    auto* const entry = heap::create<Entry>();
    if (entry == nullptr)
        return KERN_RESOURCE_SHORTAGE;
    entry->pages = pages;
    entry->writable = writable;
    entry->owned = owned;

    SpinLockGuard guard(lock_);
    // First fit, with an unmapped page behind each mapping.
    std::uint64_t address = low;
    Entry* previous = nullptr;
    for (Entry* next = entries_.first(); next != nullptr; next = EntryList::next(*next)) {
        if (next->address - address >= pages.size() + page_size)
            break;
        address = next->end() + page_size;
        previous = next;
    }
    if (high - address < pages.size() + page_size) {
        heap::destroy(entry);
        return KERN_NO_SPACE;
    }
    entry->address = address;
    entries_.insert_after(previous, *entry);
    ++count_;
    return address;
}

Result<std::uint64_t> VmMap::allocate(std::size_t size) {
    if (size == 0)
        return KERN_INVALID_ARGUMENT;
    const auto pages = page_allocator().allocate((size - 1) / page_size + 1);
    if (pages.empty())
        return KERN_RESOURCE_SHORTAGE;
    auto address = enter(pages, true, true);
    if (!address.ok())
        page_allocator().free(pages);
    return address;
}

kern_return VmMap::deallocate(std::uint64_t address) {
    Entry* const entry = take(address);
    if (entry == nullptr)
        return KERN_INVALID_ADDRESS;
    if (entry->owned)
        page_allocator().free(entry->pages);
    heap::destroy(entry);
    return KERN_SUCCESS;
}

std::span<const std::byte> VmMap::view(std::uint64_t address, std::size_t size) {
    SpinLockGuard guard(lock_);
    return find(address, size, false);
}

std::size_t VmMap::mappings() {
    SpinLockGuard guard(lock_);
    return count_;
}

kern_return VmMap::copy_in(std::uint64_t address, std::span<std::byte> to) {
    SpinLockGuard guard(lock_);
    const auto from = find(address, to.size(), false);
    if (from.empty())
        return KERN_INVALID_ADDRESS;
    std::memcpy(to.data(), from.data(), to.size());
    return KERN_SUCCESS;
}

kern_return VmMap::copy_out(std::span<const std::byte> from, std::uint64_t address) {
    SpinLockGuard guard(lock_);
    const auto to = find(address, from.size(), true);
    if (to.empty())
        return KERN_INVALID_ADDRESS;
    std::memcpy(to.data(), from.data(), from.size());
    return KERN_SUCCESS;
}

Result<std::uint64_t> VmMap::map(std::span<std::byte> pages) {
    CHECK(!pages.empty() && pages.size() % page_size == 0);
    return enter(pages, false, false);
}

void VmMap::unmap(std::uint64_t address) {
    Entry* const entry = take(address);
    CHECK(entry != nullptr && !entry->owned);
    heap::destroy(entry);
}

void VmMap::adopt(std::uint64_t address) {
    SpinLockGuard guard(lock_);
    Entry* const entry = entry_at(address);
    CHECK(entry != nullptr && !entry->owned);
    entry->owned = true;
}

std::span<std::byte> VmMap::find(std::uint64_t address, std::size_t size, bool to_write) {
    for (Entry* entry = entries_.first(); entry != nullptr; entry = EntryList::next(*entry)) {
        if (address < entry->address || address >= entry->end())
            continue;
        const auto from = static_cast<std::size_t>(address - entry->address);
        if (size > entry->pages.size() - from || (to_write && !entry->writable))
            return {};
        return entry->pages.subspan(from, size);
    }
    return {};
}

VmMap::Entry* VmMap::entry_at(std::uint64_t address) {
    for (Entry* entry = entries_.first(); entry != nullptr; entry = EntryList::next(*entry))
        if (entry->address == address)
            return entry;
    return nullptr;
}

VmMap::Entry* VmMap::take(std::uint64_t address) {
    SpinLockGuard guard(lock_);
    Entry* const entry = entry_at(address);
    if (entry != nullptr) {
        entries_.remove(*entry);
        --count_;
    }
    return entry;
}

}  // namespace kernel
