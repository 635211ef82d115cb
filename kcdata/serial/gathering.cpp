#include "kcdata/serial/gathering.hpp"

#include <algorithm>
#include <iterator>

#include "kcdata/serial/crc32c.hpp"

namespace kcdata::serial {

namespace {

std::uint32_t end_of(const std::pair<const std::uint32_t, std::vector<std::byte>>& piece) {
    return piece.first + static_cast<std::uint32_t>(piece.second.size());
}

}  // namespace

std::uint32_t Gathering::store(std::uint32_t offset, std::span<const std::byte> bytes) {
    const std::uint32_t end = offset + static_cast<std::uint32_t>(bytes.size());
    const std::uint32_t received_before = received_;
    std::uint32_t at = offset;
    auto next = pieces_.upper_bound(at);
    if (next != pieces_.begin())
        at = std::max(at, end_of(*std::prev(next)));
    // Only what is not there yet goes into the gaps between the pieces.
    while (at < end) {
        const bool bounded = next != pieces_.end() && next->first < end;
        const std::uint32_t gap_end = bounded ? next->first : end;
        if (at < gap_end) {
            const auto fresh = bytes.subspan(at - offset, gap_end - at);
            if (next != pieces_.begin() && end_of(*std::prev(next)) == at) {
                auto& before = std::prev(next)->second;
                before.insert(before.end(), fresh.begin(), fresh.end());
            } else {
                pieces_.emplace_hint(next, at, std::vector(fresh.begin(), fresh.end()));
            }
            received_ += gap_end - at;
        }
        if (!bounded)
            break;
        at = end_of(*next);
        ++next;
    }
    return received_ - received_before;
}

Gathering::Pieces::const_iterator Gathering::find(std::uint32_t offset) const {
    const auto behind = pieces_.upper_bound(offset);
    if (behind == pieces_.begin() || end_of(*std::prev(behind)) <= offset)
        return pieces_.end();
    return std::prev(behind);
}

bool Gathering::has(const Range& range) const {
    std::uint32_t at = range.offset;
    for (auto piece = find(at); at < range.offset + range.length; ++piece) {
        if (piece == pieces_.end() || piece->first > at)
            return false;
        at = end_of(*piece);
    }
    return true;
}

std::vector<std::byte> Gathering::read(const Range& range) const {
    std::vector<std::byte> bytes;
    for (auto piece = find(range.offset); bytes.size() < range.length; ++piece) {
        const std::size_t from = range.offset + bytes.size() - piece->first;
        const auto rest = std::span(piece->second).subspan(from);
        const auto taken = rest.first(std::min(rest.size(), range.length - bytes.size()));
        bytes.insert(bytes.end(), taken.begin(), taken.end());
    }
    return bytes;
}

std::vector<Range> Gathering::missing() const {
    std::vector<Range> missing;
    std::uint32_t at = 0;
    const auto gap_up_to = [&](std::uint32_t end) {
        if (at != end)
            missing.push_back({.offset = at, .length = end - at});
    };
    for (const auto& piece : pieces_) {
        gap_up_to(piece.first);
        at = end_of(piece);
    }
    gap_up_to(total_);
    return missing;
}

std::vector<std::byte> Gathering::bytes() const {
    std::vector<std::byte> bytes;
    for (const auto& [offset, piece] : pieces_) {
        if (offset != bytes.size())
            break;
        bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
    return bytes;
}

bool Gathering::verified() const {
    if (!complete())
        return false;
    Crc32c crc;
    for (const auto& piece : pieces_)
        crc.update(piece.second);
    return crc.value() == object_;
}

}  // namespace kcdata::serial
