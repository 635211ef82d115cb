#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <span>

namespace kernel {

/// Bytes on their way from one producer to one consumer, without a lock: either may be stopped at
/// any time, and the other finds it in order. At most `Size` bytes, a power of two.
template <std::size_t Size>
class ByteQueue {
    static_assert(std::has_single_bit(Size));

  public:
    static constexpr std::size_t capacity = Size;

    constexpr ByteQueue() = default;
    ByteQueue(const ByteQueue&) = delete;
    ByteQueue& operator=(const ByteQueue&) = delete;

    /// Takes the first bytes of `bytes`, as many as there is room for; returns how many. Producer.
    std::size_t put(std::span<const std::byte> bytes) {
        const std::size_t end = put_.load(std::memory_order_relaxed);
        // Acquire: the consumer has read what is overwritten now.
        const std::size_t room = Size - (end - taken_.load(std::memory_order_acquire));
        const std::size_t count = std::min(room, bytes.size());
        for (std::size_t i = 0; i < count; i++)
            bytes_[(end + i) % Size] = bytes[i];
        // Release: the bytes.
        put_.store(end + count, std::memory_order_release);
        return count;
    }

    /// Whether there is no room; may change at once. Producer.
    bool full() const {
        return put_.load(std::memory_order_relaxed) - taken_.load(std::memory_order_acquire) ==
               Size;
    }

    /// The byte that comes next; false if there is none. Consumer.
    bool peek(std::byte& byte) const {
        const std::size_t begin = taken_.load(std::memory_order_relaxed);
        if (begin == put_.load(std::memory_order_acquire))
            return false;
        byte = bytes_[begin % Size];
        return true;
    }
    /// Takes out the byte peek() has shown. Consumer.
    void pop() {
        taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

    /// Takes out the bytes that come next, up to `into.size()` of them; returns how many. Consumer.
    std::size_t take(std::span<std::byte> into) {
        const std::size_t begin = taken_.load(std::memory_order_relaxed);
        // Acquire: the bytes.
        const std::size_t count =
            std::min(into.size(), put_.load(std::memory_order_acquire) - begin);
        for (std::size_t i = 0; i < count; i++)
            into[i] = bytes_[(begin + i) % Size];
        // Release: they have been read before they are overwritten.
        taken_.store(begin + count, std::memory_order_release);
        return count;
    }

    /// Any context; may change at once.
    bool empty() const { return size() == 0; }
    /// How many there are. Any context; may change at once.
    std::size_t size() const {
        // In this order: what was put is never less than what was taken.
        const std::size_t taken = taken_.load(std::memory_order_acquire);
        return put_.load(std::memory_order_acquire) - taken;
    }

  private:
    std::atomic<std::size_t> put_{0}, taken_{0};  ///< how many ever
    std::array<std::byte, Size> bytes_{};
};

}  // namespace kernel
