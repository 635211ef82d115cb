#pragma once

#include <cstddef>
#include <span>

#include "kernel/format_text.hpp"

namespace kernel {

/// A text that is built up in pages of its own, which it gives back when it goes. Thread context,
/// one thread at a time.
class PageText final : public TextSink {
  public:
    /// No text is longer.
    static constexpr std::size_t max_size = std::size_t{4} << 20;

    PageText() = default;
    ~PageText() { clear(); }
    PageText(const PageText&) = delete;
    PageText& operator=(const PageText&) = delete;

    void put(const char* text, std::size_t length) override;
    /// Whether all that was put is there: memory did not run out.
    bool complete() const { return complete_; }
    /// Good until the next call of another function.
    std::span<const std::byte> bytes() const { return pages_.first(size_); }
    /// Begins anew.
    void clear();

  private:
    bool grow(std::size_t size);

    std::span<std::byte> pages_{};
    std::size_t size_ = 0;
    bool complete_ = true;
};

}  // namespace kernel
