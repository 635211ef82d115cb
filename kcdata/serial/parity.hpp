#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/serial/frame.hpp"

/// Forward error correction for a line without a way back: a Cauchy Reed-Solomon code across frames
/// (Blömer et al., "An XOR-based erasure-resilient coding scheme", 1995; here byte by byte).
///
/// A capture's data frames, all `payload` bytes long (zeros fill up the last one), belong to groups
/// in turn: frame n to group n mod groups, where it is the (n / groups)-th. So what is lost in one
/// go is lost by many groups. Parity frame j of a group holds, of each byte's place, the sum over
/// the group's frames i of frame(i) / (x(j) + y(i)) in GF(256), with x(j) = 255 - j and y(i) = i.
/// Any e parity frames restore any e frames of their group, as every square part of that matrix
/// can be inverted.
namespace kcdata::serial {

/// GF(256) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), of which 2 is a generator.
class Gf256 {
  public:
    static constexpr std::uint8_t multiply(std::uint8_t one, std::uint8_t other) {
        return one == 0 || other == 0
                   ? std::uint8_t{0}
                   : tables.power[std::size_t{tables.logarithm[one]} + tables.logarithm[other]];
    }
    /// Requires `value` not to be 0.
    static constexpr std::uint8_t inverse(std::uint8_t value) {
        return tables.power[255u - tables.logarithm[value]];
    }
    /// sum += factor * bytes; `sum` is as long at least.
    static void add_multiple(std::span<std::byte> sum, std::uint8_t factor,
                             std::span<const std::byte> bytes);

  private:
    struct Tables {
        std::array<std::uint8_t, 510> power;  ///< of 2; twice around
        std::array<std::uint8_t, 256> logarithm;
    };
    static constexpr Tables tables = [] {
        Tables result{};
        unsigned value = 1;
        for (std::size_t exponent = 0; exponent < 255; ++exponent) {
            result.power[exponent] = static_cast<std::uint8_t>(value);
            result.power[exponent + 255] = static_cast<std::uint8_t>(value);
            result.logarithm[value] = static_cast<std::uint8_t>(exponent);
            value = value << 1 ^ ((value & 0x80) != 0 ? 0x11du : 0u);
        }
        return result;
    }();
};

/// What frame `index` of a group is multiplied with in parity frame `parity`.
/// Requires index + parity to be at most 254.
constexpr std::uint8_t parity_factor(std::size_t parity, std::size_t index) {
    return Gf256::inverse(static_cast<std::uint8_t>((255 - parity) ^ index));
}

/// How a capture's data frames are grouped.
struct ParityLayout {
    std::uint32_t total = 0;    ///< bytes of the capture
    std::uint32_t payload = 0;  ///< bytes of each data frame
    std::uint32_t groups = 0;

    constexpr std::uint32_t frames() const { return (total - 1) / payload + 1; }
    /// Data frames of a group.
    constexpr std::uint32_t frames_of(std::uint32_t group) const {
        return (frames() - group - 1) / groups + 1;
    }
    constexpr std::uint32_t frame(std::uint32_t group, std::uint32_t index) const {
        return group + index * groups;
    }
    constexpr std::uint32_t offset(std::uint32_t frame) const { return frame * payload; }
    constexpr std::uint32_t length(std::uint32_t frame) const {
        return total - offset(frame) < payload ? total - offset(frame) : payload;
    }

    bool operator==(const ParityLayout&) const = default;
};

/// Longest payload with parity frames: on a lossy line long frames are of no use.
inline constexpr std::size_t max_parity_payload = 512;
/// Most frames of a group, of both kinds.
inline constexpr std::uint32_t max_group_frames = 255;

/// A parity frame:
///
///     offset  size
///          0     4  object: CRC-32C of the whole capture
///          4     4  total: bytes of the whole capture
///          8     2  groups
///         10     2  group
///         12     1  which parity frame of the group, from 0
///         13     1  0
///         14     n  sum, as long as the payload of the data frames
struct ParityFrame {
    std::uint32_t object = 0;
    ParityLayout layout{};
    std::uint32_t group = 0;
    std::uint32_t parity = 0;
    std::span<const std::byte> sum{};
};
inline constexpr std::size_t parity_head_size = 14;

/// KERN_INVALID_ARGUMENT: the numbers contradict each other. Otherwise the sink's error.
kern_return write_parity_frame(ByteSink& sink, Encoding encoding, const ParityFrame& frame);
/// False if `frame` is of another kind or the numbers in it contradict each other.
bool parse_parity_frame(const Frame& frame, ParityFrame& parity);

/// The sum of parity frame `parity` of `group` for the capture's bytes; `sum` is as long as the
/// layout's payload.
void make_parity(std::span<const std::byte> capture, const ParityLayout& layout,
                 std::uint32_t group, std::uint32_t parity, std::span<std::byte> sum);

}  // namespace kcdata::serial
