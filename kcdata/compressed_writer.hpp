#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/compression.hpp"
#include "kcdata/result.hpp"
#include "kcdata/writer.hpp"
#include "kcdata/zlib_memory.hpp"

namespace kcdata {

/// How a stream is compressed: what deflateInit2() is told, and when the stream is flushed.
struct ZlibParameters {
    int level = 6;         ///< 0 (stored) to 9 (smallest)
    int window_bits = 15;  ///< 9 to 15; the stream has a zlib header
    int mem_level = 8;     ///< 1 to 9
    /// Every append ends with a sync flush: all of it is in the buffer then, at 5 bytes or more.
    bool flush_each = false;
};
/// XNU's choice: little memory, and a stream that can be cut off behind every item.
inline constexpr ZlibParameters xnu_zlib_parameters{
    .level = 1, .window_bits = 12, .mem_level = 3, .flush_each = true};
/// Ours: half of XNU's size for captures, or less.
inline constexpr ZlibParameters default_zlib_parameters{};

/// Writes a compressed buffer: takes kcdata items and appends them to one zlib stream.
///
/// A class beside Writer, not a mode of it: records are made in plain memory, by a Writer, and
/// compressed when they are complete. Made elsewhere, append_items() takes them; made here, in a
/// compression window. So no payload that is still to be filled in can already be compressed.
///
/// Allocates nothing: zlib's state lies in memory the caller gives. No locks; any context that may
/// use floating-point registers, which zlib's code does. The layout is in kcdata/compression.hpp.
///
/// Errors: KERN_INSUFFICIENT_BUFFER_SIZE (what zlib may at worst make of it does not fit: nothing
/// is changed, and the buffer can still be ended), KERN_INVALID_ARGUMENT (not begun or already
/// ended, or a window is open).
class CompressedWriter {
  public:
    /// Bytes zlib takes at most for a stream of these parameters.
    static std::size_t memory_size(const ZlibParameters& parameters);

    /// `buffer`: 8-byte aligned. `memory`: memory_size(parameters) bytes. Both outlive the writer,
    /// which does not own them.
    CompressedWriter(std::span<std::byte> buffer, std::span<std::byte> memory,
                     const ZlibParameters& parameters = default_zlib_parameters)
        : buffer_(buffer), memory_(memory), parameters_(parameters) {}
    ~CompressedWriter();
    CompressedWriter(const CompressedWriter&) = delete;
    CompressedWriter& operator=(const CompressedWriter&) = delete;

    /// Writes the head. `magic` and `flags` are those of the BEGIN item of the plain buffer. Once.
    /// KERN_RESOURCE_SHORTAGE: too little memory for zlib. KERN_INVALID_ARGUMENT: parameters zlib
    /// does not know, too.
    kern_return begin(std::uint32_t magic, std::uint64_t flags = KCDATA_FLAGS_STRUCT_HAS_PADDING);

    /// Compresses whole items that a Writer made, or that a plain buffer holds.
    kern_return append_items(std::span<const std::byte> items);

    /// Opens the compression window: a Writer on the room that is left. Its items are compressed
    /// by close_window(), which must be possible in the room behind them. Refuses everything with
    /// KERN_INSUFFICIENT_BUFFER_SIZE where no window can be opened.
    Writer& open_window();
    /// Compresses what the window holds, and lets go of the window. After an error its items are
    /// lost; the buffer is as it was before the window was opened.
    kern_return close_window();

    /// Ends the stream, patches the totals, writes BUFFER_END and zeroes the rest of the buffer.
    kern_return end();

    /// Bytes of the buffer that are written. All of the stream is only once end() was called.
    std::size_t used() const { return used_; }
    /// Bytes of the items taken so far.
    std::uint64_t uncompressed() const { return total_in_; }

  private:
    enum class State : std::uint8_t { fresh, open, window, ended };

    std::span<std::byte> room() const;
    /// Room in which `size` bytes can be compressed, flushed, and the stream be ended.
    std::size_t room_for(std::size_t size);
    /// Lets zlib take all of `input`, and write to `out`; how much it wrote.
    Result<std::size_t> compress(std::span<std::byte> out, std::span<const std::byte> input,
                                 int flush);
    /// The stream has lost bytes, or cannot be begun: nothing more is taken.
    kern_return fail(kern_return error);
    kern_return flush();
    void taken(std::size_t size, std::size_t written);
    void patch(std::size_t which, std::uint64_t value);

    std::span<std::byte> buffer_;
    ZlibMemory memory_;
    ZlibParameters parameters_;
    /// zlib keeps its address: never copied, never moved.
    z_stream stream_{};
    std::size_t used_ = 0;
    std::uint64_t total_in_ = 0;
    /// Bytes taken since the last flush: zlib may still hold what it makes of them.
    std::size_t unflushed_ = 0;
    Writer window_{};
    State state_ = State::fresh;
};

}  // namespace kcdata
