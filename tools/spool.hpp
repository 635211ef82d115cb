#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/descriptor.hpp"
#include "tools/failure.hpp"

namespace tools {

/// Bytes that are held, in memory or as the mapping of a file, until the object is gone.
class HeldBytes {
  public:
    HeldBytes() = default;
    explicit HeldBytes(std::vector<std::byte> memory) : memory_(std::move(memory)) {}
    /// Maps `size` bytes, not 0, of the file; the descriptor may be closed then. Should the file
    /// become shorter, the program ends with a message.
    static Expected<HeldBytes> map(int fd, std::size_t size, const std::string& name);
    HeldBytes(HeldBytes&& other) noexcept;
    HeldBytes& operator=(HeldBytes&& other) noexcept;
    ~HeldBytes();

    std::span<const std::byte> get() const {
        const auto all = mapping_.empty() ? std::span<const std::byte>(memory_) : mapping_;
        return all.subspan(skipped_);
    }
    /// Leaves out the first `size` bytes, which get() has, from now on.
    void skip(std::size_t size) { skipped_ += size; }

  private:
    std::vector<std::byte> memory_{};
    std::span<const std::byte> mapping_{};
    std::size_t skipped_ = 0;
};

/// Takes bytes of which it is not known how many will come: few stay in memory, more go to a file
/// in TMPDIR [/tmp] that has no name, so that it is gone whatever becomes of the program.
class Spool {
  public:
    static constexpr std::size_t memory_size = 1 << 20;

    /// More than `limit` bytes are refused, with `too_much` as the Failure.
    Spool(std::uint64_t limit, std::string too_much)
        : limit_(limit), too_much_(std::move(too_much)) {}

    std::optional<Failure> append(std::span<const std::byte> bytes);
    std::uint64_t size() const { return size_; }
    /// All of it. The spool is not used any more.
    Expected<HeldBytes> take();

  private:
    std::uint64_t limit_;
    std::string too_much_;
    std::uint64_t size_ = 0;
    std::vector<std::byte> memory_{};
    Descriptor file_{};
};

}  // namespace tools
