#include "kcdata/compressed_writer.hpp"

#include <algorithm>
#include <cstring>

#include "kcdata/zlib_pieces.hpp"

namespace kcdata {

namespace {

/// Of the empty block that a sync flush adds; and of the last block and the checksum.
constexpr std::size_t flush_size = 8;
constexpr std::size_t ending_size = 8;

/// Offset of the value of the `which`-th described number.
constexpr std::size_t described_value(std::size_t which) {
    return item_size(0) + which * item_size(described_uint64_size) + sizeof(ItemHeader) +
           description_size;
}

}  // namespace

std::size_t CompressedWriter::memory_size(const ZlibParameters& parameters) {
    // zconf.h's formula, and what it leaves out: the fixed part of the state (6 KiB in 1.2 and
    // 1.3), a larger symbol buffer (LIT_MEM), and the alignment of each piece.
    const int window_bits = std::clamp(parameters.window_bits, 9, MAX_WBITS);
    const int mem_level = std::clamp(parameters.mem_level, 1, MAX_MEM_LEVEL);
    return (std::size_t{1} << (window_bits + 2)) + (std::size_t{1} << (mem_level + 9)) +
           (std::size_t{1} << (mem_level + 6)) + 8 * 1024;
}

CompressedWriter::~CompressedWriter() {
    if (state_ == State::open || state_ == State::window)
        deflateEnd(&stream_);
}

/// What is free, less the room for BUFFER_END.
std::span<std::byte> CompressedWriter::room() const {
    return buffer_.subspan(used_).first(buffer_.size() - used_ - sizeof(ItemHeader));
}

std::size_t CompressedWriter::room_for(std::size_t size) {
    return deflateBound(&stream_, size) + flush_size + ending_size;
}

kern_return CompressedWriter::begin(std::uint32_t magic, std::uint64_t flags) {
    if (state_ != State::fresh)
        return KERN_INVALID_ARGUMENT;
    Writer head(buffer_);
    const ItemHeader inner_begin{magic, 0, flags};
    kern_return error = head.begin(KCDATA_BUFFER_BEGIN_COMPRESSED);
    if (error == KERN_SUCCESS)
        error = head.append_uint64_with_description(kcd_c_type, KCDCT_ZLIB);
    if (error == KERN_SUCCESS)
        error = head.append_uint64_with_description(kcd_c_totalout, 0);
    if (error == KERN_SUCCESS)
        error = head.append_uint64_with_description(kcd_c_totalin, 0);
    if (error == KERN_SUCCESS)
        error = head.append_items(std::as_bytes(std::span(&inner_begin, 1)));
    if (error != KERN_SUCCESS)
        return error;

    memory_.serve(stream_);
    switch (deflateInit2(&stream_, parameters_.level, Z_DEFLATED, parameters_.window_bits,
                         parameters_.mem_level, Z_DEFAULT_STRATEGY)) {
        case Z_OK:
            break;
        case Z_MEM_ERROR:
            return KERN_RESOURCE_SHORTAGE;
        default:
            return KERN_INVALID_ARGUMENT;
    }
    state_ = State::open;
    used_ = head.used();
    if (room().size() >= room_for(0))
        return KERN_SUCCESS;
    return fail(KERN_INSUFFICIENT_BUFFER_SIZE);
}

Result<std::size_t> CompressedWriter::compress(std::span<std::byte> out,
                                               std::span<const std::byte> input, int flush) {
    std::size_t written = 0;
    for (;;) {
        feed(stream_, input);
        const uInt size = give_room(stream_, out.subspan(written));
        const int status = deflate(&stream_, input.empty() ? flush : Z_NO_FLUSH);
        written += size - stream_.avail_out;
        if (status == Z_STREAM_END)
            return written;
        if (status != Z_OK && status != Z_BUF_ERROR)
            return fail(KERN_FAILURE);
        if (stream_.avail_out != 0 && stream_.avail_in == 0 && input.empty())
            return written;
        // zlib needs more than it promised.
        if (written == out.size())
            return fail(KERN_INSUFFICIENT_BUFFER_SIZE);
    }
}

kern_return CompressedWriter::fail(kern_return error) {
    deflateEnd(&stream_);
    state_ = State::ended;
    return error;
}

void CompressedWriter::taken(std::size_t size, std::size_t written) {
    used_ += written;
    total_in_ += size;
    unflushed_ = parameters_.flush_each ? 0 : unflushed_ + size;
}

kern_return CompressedWriter::flush() {
    const auto written = compress(room(), {}, Z_SYNC_FLUSH);
    if (!written.ok())
        return written.error();
    used_ += written.value();
    unflushed_ = 0;
    return KERN_SUCCESS;
}

kern_return CompressedWriter::append_items(std::span<const std::byte> items) {
    if (state_ != State::open)
        return KERN_INVALID_ARGUMENT;
    if (items.empty())
        return KERN_SUCCESS;
    if (unflushed_ != 0 && room().size() < room_for(unflushed_ + items.size())) {
        // What zlib holds back may take more room than it will: written out, it is known.
        if (const kern_return error = flush(); error != KERN_SUCCESS)
            return error;
    }
    if (room().size() < room_for(unflushed_ + items.size()))
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    const auto written =
        compress(room(), items, parameters_.flush_each ? Z_SYNC_FLUSH : Z_NO_FLUSH);
    if (!written.ok())
        return written.error();
    taken(items.size(), written.value());
    return KERN_SUCCESS;
}

Writer& CompressedWriter::open_window() {
    if (state_ != State::open)
        return window_;
    // So that closing has to find room for the window's own bytes only.
    if (unflushed_ != 0 && flush() != KERN_SUCCESS)
        return window_;
    const auto free = buffer_.subspan(used_);
    const std::size_t skipped =
        std::min(padding_for(reinterpret_cast<std::uintptr_t>(free.data())), free.size());
    window_ = Writer(free.subspan(skipped));
    state_ = State::window;
    return window_;
}

kern_return CompressedWriter::close_window() {
    if (state_ != State::window)
        return KERN_INVALID_ARGUMENT;
    state_ = State::open;
    const auto items = window_.buffer().first(window_.used());
    const auto behind = window_.buffer().subspan(window_.used());
    window_ = Writer();
    if (items.empty())
        return KERN_SUCCESS;
    if (behind.size() < room_for(items.size()) + sizeof(ItemHeader))
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    const auto written = compress(behind.first(behind.size() - sizeof(ItemHeader)), items,
                                  parameters_.flush_each ? Z_SYNC_FLUSH : Z_NO_FLUSH);
    if (!written.ok())
        return written.error();
    std::memmove(buffer_.data() + used_, behind.data(), written.value());
    taken(items.size(), written.value());
    return KERN_SUCCESS;
}

void CompressedWriter::patch(std::size_t which, std::uint64_t value) {
    std::memcpy(buffer_.data() + described_value(which), &value, sizeof(value));
}

kern_return CompressedWriter::end() {
    if (state_ != State::open)
        return KERN_INVALID_ARGUMENT;
    const auto written = compress(room(), {}, Z_FINISH);
    if (!written.ok())
        return written.error();
    deflateEnd(&stream_);
    state_ = State::ended;
    used_ += written.value();
    patch(1, used_ - compressed_head_size);
    patch(2, total_in_);

    const ItemHeader end{KCDATA_TYPE_BUFFER_END, 0, 0};
    std::memcpy(buffer_.data() + used_, &end, sizeof(end));
    used_ += sizeof(end);
    // What a window held.
    const auto rest = buffer_.subspan(used_);
    if (!rest.empty())
        std::memset(rest.data(), 0, rest.size());
    return KERN_SUCCESS;
}

}  // namespace kcdata
