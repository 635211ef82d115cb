#include "kernel/capture_compression.hpp"

#include "kcdata/compressed_writer.hpp"
#include "kcdata/format.hpp"
#include "kernel/page_allocator.hpp"

namespace kernel {

using namespace kcdata;

namespace {

/// Whole pages, given back unless they are kept.
class Pages {
  public:
    explicit Pages(std::size_t size)
        : pages_(page_allocator().allocate((size + page_size - 1) / page_size)) {}
    ~Pages() {
        if (!pages_.empty())
            page_allocator().free(pages_);
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    std::span<std::byte> all() const { return pages_; }
    /// Those that the first `size` bytes are in.
    std::span<std::byte> keep(std::size_t size) {
        const std::size_t kept = (size + page_size - 1) / page_size * page_size;
        if (kept < pages_.size())
            page_allocator().free(pages_.subspan(kept));
        const std::span<std::byte> result = pages_.first(kept);
        pages_ = {};
        return result;
    }

  private:
    std::span<std::byte> pages_;
};

/// What zlib may at worst make of `size` bytes, and the head.
constexpr std::size_t most_compressed(std::size_t size) {
    return size + size / 512 + page_size;
}

}  // namespace

Result<CompressedCapture> compress_capture(std::span<const std::byte> capture) {
    if (capture.size() < 2 * sizeof(ItemHeader))
        return KERN_INVALID_ARGUMENT;
    const ItemHeader begin = load_header(capture.data());
    const std::size_t end = capture.size() - sizeof(ItemHeader);
    if (!is_begin_magic(begin.type) || begin.type == KCDATA_BUFFER_BEGIN_COMPRESSED ||
        load_header(capture.data() + end).type != KCDATA_TYPE_BUFFER_END)
        return KERN_INVALID_ARGUMENT;

    const Pages zlib_memory(CompressedWriter::memory_size(default_zlib_parameters));
    Pages buffer(most_compressed(capture.size()));
    if (zlib_memory.all().empty() || buffer.all().empty())
        return KERN_RESOURCE_SHORTAGE;
    CompressedWriter writer(buffer.all(), zlib_memory.all());
    kern_return error = writer.begin(begin.type, begin.flags);
    if (error == KERN_SUCCESS)
        error = writer.append_items(capture.subspan(sizeof(ItemHeader), end - sizeof(ItemHeader)));
    if (error == KERN_SUCCESS)
        error = writer.end();
    if (error != KERN_SUCCESS)
        return error;
    return CompressedCapture{.pages = buffer.keep(writer.used()), .size = writer.used()};
}

}  // namespace kernel
