#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/format.hpp"

namespace kcdata {

// A compressed buffer (osfmk/kern/kern_cdata.c): BEGIN_COMPRESSED; the three described numbers
// below; the BEGIN header of the plain buffer; one zlib stream of that buffer's items, without its
// BEGIN and BUFFER_END; a BUFFER_END directly behind the stream, not aligned.

inline constexpr const char* kcd_c_type = "kcd_c_type";          ///< how it is compressed
inline constexpr const char* kcd_c_totalout = "kcd_c_totalout";  ///< bytes of the stream
inline constexpr const char* kcd_c_totalin = "kcd_c_totalin";    ///< bytes of the items in it

/// The one value of kcd_c_type that is ever written.
inline constexpr std::uint64_t KCDCT_ZLIB = 1;

/// Where the stream begins.
inline constexpr std::size_t compressed_head_size =
    item_size(0) + 3 * item_size(described_uint64_size) + sizeof(ItemHeader);

/// What is wrong with a compressed buffer. `none` means nothing is.
enum class [[nodiscard]] CompressionError : std::uint8_t{
    none,
    not_compressed,       ///< the first item is not BEGIN_COMPRESSED
    bad_head,             ///< the three numbers are not there, or cut off
    unknown_compression,  ///< kcd_c_type is not KCDCT_ZLIB
    bad_inner_begin,      ///< no BEGIN of a plain buffer in front of the stream
    unfinished,           ///< the totals were never filled in: the writer did not get to its end
    truncated_stream,     ///< fewer bytes than kcd_c_totalout, or the stream does not end in them
    missing_end,          ///< no BUFFER_END behind the stream
    too_large,            ///< kcd_c_totalin, or what comes out, is above the caller's limit
    bad_stream,           ///< no zlib stream, or a damaged one
    wrong_totalout,       ///< the stream ends before kcd_c_totalout
    wrong_totalin,        ///< another number of bytes comes out than kcd_c_totalin
    insufficient_memory,  ///< the memory given is less than Inflater::memory_size
};
const char* compression_error_text(CompressionError error);

/// What stands in front of the stream.
struct CompressedHead {
    /// The BEGIN header of the plain buffer, which is this header, the inflated bytes, and a
    /// BUFFER_END.
    ItemHeader inner_begin{};
    /// kcd_c_totalin and kcd_c_totalout; both 0 while a buffer is unfinished.
    std::uint64_t total_in = 0;
    std::uint64_t total_out = 0;
    /// The stream, as far as it is there; all that follows the head in an unfinished buffer.
    std::span<const std::byte> stream{};
    /// Offset behind the BUFFER_END; behind the stream if there is none.
    std::size_t end_offset = 0;

    bool finished() const { return total_out != 0; }
};

/// Reads the head of the compressed buffer at the start of `buffer`; allocates nothing, takes any
/// bytes. If has_stream() of what it returns, the head is filled in, and an Inflater gets out of
/// the stream what is there.
CompressionError read_compressed_head(std::span<const std::byte> buffer, CompressedHead& head);
constexpr bool has_stream(CompressionError of_head) {
    return of_head == CompressionError::none || of_head == CompressionError::unfinished ||
           of_head == CompressionError::truncated_stream ||
           of_head == CompressionError::missing_end;
}

}  // namespace kcdata
