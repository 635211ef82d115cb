#pragma once

#include <array>
#include <cstddef>

namespace platform {

/// A list with room for `Capacity` elements inside itself.
template <typename T, std::size_t Capacity>
class BoundedList {
  public:
    static constexpr std::size_t capacity = Capacity;

    /// False if the list is full.
    [[nodiscard]] constexpr bool push_back(const T& element) {
        if (size_ == Capacity)
            return false;
        elements_[size_++] = element;
        return true;
    }

    constexpr std::size_t size() const { return size_; }
    constexpr bool empty() const { return size_ == 0; }
    constexpr T& operator[](std::size_t index) { return elements_[index]; }
    constexpr const T& operator[](std::size_t index) const { return elements_[index]; }
    constexpr T* begin() { return elements_.data(); }
    constexpr T* end() { return elements_.data() + size_; }
    constexpr const T* begin() const { return elements_.data(); }
    constexpr const T* end() const { return elements_.data() + size_; }

  private:
    std::array<T, Capacity> elements_{};
    std::size_t size_ = 0;
};

}  // namespace platform
