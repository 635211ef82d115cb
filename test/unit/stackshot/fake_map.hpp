#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "fake_system.hpp"
#include "stackshot/publication.hpp"

/// A caller's map on the host: words a test may write and read, and what was mapped into it.
class FakeMap final : public stackshot::CallerMap {
  public:
    struct Mapping {
        std::span<std::byte> pages{};
        bool adopted = false;
    };

    explicit FakeMap(FakeSystem& system) : system_(system) {}
    ~FakeMap() {
        for (const auto& [address, mapping] : mappings_) {
            if (mapping.adopted)
                system_.free(mapping.pages);
        }
    }

    /// Makes memory of the caller at `address`, and gives access to it.
    std::vector<std::byte>& memory(std::uint64_t address, std::size_t size) {
        auto& bytes = memory_[address];
        bytes.resize(size);
        return bytes;
    }
    template <typename T>
    T value(std::uint64_t address) {
        T result;
        std::memcpy(&result, memory_.at(address).data(), sizeof(result));
        return result;
    }
    const std::map<std::uint64_t, Mapping>& mappings() const { return mappings_; }
    /// Lets go of the mapping at `address`, like munmap.
    void deallocate(std::uint64_t address) {
        const Mapping mapping = mappings_.at(address);
        if (mapping.adopted)
            system_.free(mapping.pages);
        mappings_.erase(address);
    }

    /// The n-th from now on fails, counted from 1; 0: none does.
    std::size_t failing_map = 0;
    std::size_t failing_copy_out = 0;

    kcdata::kern_return copy_in(std::uint64_t address, std::span<std::byte> to) override {
        const auto found = memory_.find(address);
        if (found == memory_.end() || found->second.size() < to.size())
            return kcdata::KERN_INVALID_ADDRESS;
        std::memcpy(to.data(), found->second.data(), to.size());
        return kcdata::KERN_SUCCESS;
    }
    kcdata::kern_return copy_out(std::span<const std::byte> from, std::uint64_t address) override {
        if (failing_copy_out != 0 && --failing_copy_out == 0)
            return kcdata::KERN_INVALID_ADDRESS;
        const auto found = memory_.find(address);
        if (found == memory_.end() || found->second.size() < from.size())
            return kcdata::KERN_INVALID_ADDRESS;
        std::memcpy(found->second.data(), from.data(), from.size());
        return kcdata::KERN_SUCCESS;
    }
    kcdata::Result<std::uint64_t> map(std::span<std::byte> pages) override {
        if (failing_map != 0 && --failing_map == 0)
            return kcdata::KERN_NO_SPACE;
        const std::uint64_t address = next_;
        next_ += 0x1000'0000;
        mappings_[address] = {pages, false};
        return address;
    }
    void unmap(std::uint64_t address) override { mappings_.erase(address); }
    void adopt(std::uint64_t address) override { mappings_.at(address).adopted = true; }

  private:
    FakeSystem& system_;
    std::map<std::uint64_t, std::vector<std::byte>> memory_{};
    std::map<std::uint64_t, Mapping> mappings_{};
    std::uint64_t next_ = 0x1'0000'0000;
};
