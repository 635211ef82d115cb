#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/compression.hpp"
#include "kcdata/zlib_memory.hpp"

namespace kcdata {

/// Inflates the stream of a compressed buffer piece by piece. Allocates nothing: zlib's state lies
/// in memory the caller gives. Takes any bytes, and never hands out more than kcd_c_totalin.
class Inflater {
  public:
    /// Bytes zlib takes for any stream (32 KiB of window, 7 KiB of tables), with room to spare.
    static constexpr std::size_t memory_size = 44 * 1024;

    /// `head` as read_compressed_head() filled it in; the buffer and `memory` outlive the inflater.
    /// `limit`: bytes that may come out; a buffer that declares more is refused at once.
    Inflater(const CompressedHead& head, std::span<std::byte> memory,
             std::uint64_t limit = UINT64_MAX);
    ~Inflater();
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;

    /// Puts the next bytes into `out` and returns how many. Fewer than `out` holds: that was all,
    /// or all in front of an error; error() tells.
    std::size_t read(std::span<std::byte> out);

    CompressionError error() const { return error_; }
    /// Bytes that came out so far.
    std::uint64_t total() const { return total_; }

  private:
    /// One turn of zlib: how many bytes came out.
    std::size_t step(std::span<std::byte> out);
    void end_of_stream();
    void end(CompressionError error);

    bool finished_;
    /// Bytes that may come out.
    std::uint64_t allowed_;
    /// Bytes of kcd_c_totalout that are not there.
    std::uint64_t missing_;
    ZlibMemory memory_;
    /// zlib keeps its address: never copied, never moved.
    z_stream stream_{};
    /// What zlib was not given yet.
    std::span<const std::byte> input_;
    std::uint64_t total_ = 0;
    bool initialized_ = false;
    bool at_stream_end_ = false;
    bool done_ = false;
    CompressionError error_ = CompressionError::none;
};

}  // namespace kcdata
