#include "kernel/page_text.hpp"

#include <algorithm>
#include <cstring>

#include "kernel/page_allocator.hpp"

namespace kernel {

void PageText::put(const char* text, std::size_t length) {
    if (length > pages_.size() - size_ && !grow(size_ + length)) {
        complete_ = false;
        return;
    }
    std::memcpy(pages_.data() + size_, text, length);
    size_ += length;
}

void PageText::clear() {
    if (!pages_.empty())
        page_allocator().free(pages_);
    pages_ = {};
    size_ = 0;
    complete_ = true;
}

/// Makes room for `size` bytes, and as much again as there was.
bool PageText::grow(std::size_t size) {
    if (!complete_ || size > max_size)
        return false;
    const std::size_t wanted = std::max(size, 2 * pages_.size());
    const auto pages = page_allocator().allocate((wanted + page_size - 1) / page_size);
    if (pages.empty())
        return false;
    std::memcpy(pages.data(), pages_.data(), size_);
    if (!pages_.empty())
        page_allocator().free(pages_);
    pages_ = pages;
    return true;
}

}  // namespace kernel
