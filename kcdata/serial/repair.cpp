#include "kcdata/serial/repair.hpp"

#include <algorithm>
#include <utility>

namespace kcdata::serial {

namespace {

constexpr std::size_t max_schemes = 4;

/// Factors of the lost frames, and what the sum of the products is.
struct Equation {
    std::vector<std::uint8_t> factors;
    std::vector<std::byte> sum;

    void add_multiple(std::uint8_t factor, const Equation& other) {
        for (std::size_t column = 0; column < factors.size(); ++column)
            factors[column] = static_cast<std::uint8_t>(
                factors[column] ^ Gf256::multiply(factor, other.factors[column]));
        Gf256::add_multiple(sum, factor, other.sum);
    }
    void scale(std::uint8_t factor) {
        for (std::uint8_t& each : factors)
            each = Gf256::multiply(factor, each);
        std::vector<std::byte> scaled(sum.size());
        Gf256::add_multiple(scaled, factor, sum);
        sum = std::move(scaled);
    }
};

/// Gauss and Jordan: makes the matrix of factors the unit matrix. It is part of a Cauchy matrix,
/// none of whose leading parts is singular, so every pivot is there.
void solve(std::vector<Equation>& equations) {
    for (std::size_t pivot = 0; pivot < equations.size(); ++pivot) {
        equations[pivot].scale(Gf256::inverse(equations[pivot].factors[pivot]));
        for (std::size_t other = 0; other < equations.size(); ++other) {
            if (other != pivot && equations[other].factors[pivot] != 0)
                equations[other].add_multiple(equations[other].factors[pivot], equations[pivot]);
        }
    }
}

}  // namespace

std::uint32_t Repair::take(const ParityFrame& frame, Gathering& gathering) {
    auto scheme = std::find_if(schemes_.begin(), schemes_.end(),
                               [&](const Scheme& one) { return one.layout == frame.layout; });
    if (scheme == schemes_.end()) {
        if (schemes_.size() == max_schemes)
            schemes_.erase(schemes_.begin());
        scheme = schemes_.insert(schemes_.end(), Scheme{.layout = frame.layout});
    }
    Sums& sums = scheme->groups[frame.group];
    sums.try_emplace(frame.parity, frame.sum.begin(), frame.sum.end());
    return restore(frame.layout, frame.group, sums, gathering);
}

std::uint32_t Repair::take(const Range& range, Gathering& gathering) {
    std::uint32_t restored = 0;
    for (const Scheme& scheme : schemes_) {
        const ParityLayout& layout = scheme.layout;
        const std::uint32_t last = (range.offset + range.length - 1) / layout.payload;
        for (std::uint32_t frame = range.offset / layout.payload; frame <= last; ++frame) {
            const auto group = scheme.groups.find(frame % layout.groups);
            if (group != scheme.groups.end())
                restored += restore(layout, group->first, group->second, gathering);
        }
    }
    return restored;
}

std::uint32_t Repair::restore(const ParityLayout& layout, std::uint32_t group, const Sums& sums,
                              Gathering& gathering) {
    std::vector<std::uint32_t> lost;
    const std::uint32_t count = layout.frames_of(group);
    for (std::uint32_t index = 0; index < count; ++index) {
        const std::uint32_t frame = layout.frame(group, index);
        if (gathering.has({.offset = layout.offset(frame), .length = layout.length(frame)}))
            continue;
        if (lost.size() == sums.size())
            return 0;
        lost.push_back(index);
    }
    if (lost.empty())
        return 0;

    std::vector<Equation> equations;
    auto sum = sums.begin();
    for (std::size_t row = 0; row < lost.size(); ++row, ++sum) {
        Equation equation{.factors = {}, .sum = sum->second};
        for (const std::uint32_t index : lost)
            equation.factors.push_back(parity_factor(sum->first, index));
        equations.push_back(std::move(equation));
    }
    // What is there is taken out of the sums.
    auto next_lost = lost.begin();
    for (std::uint32_t index = 0; index < count; ++index) {
        if (next_lost != lost.end() && *next_lost == index) {
            ++next_lost;
            continue;
        }
        const std::uint32_t frame = layout.frame(group, index);
        const std::vector<std::byte> bytes =
            gathering.read({.offset = layout.offset(frame), .length = layout.length(frame)});
        sum = sums.begin();
        for (Equation& equation : equations)
            Gf256::add_multiple(equation.sum, parity_factor((sum++)->first, index), bytes);
    }
    solve(equations);
    std::uint32_t restored = 0;
    for (std::size_t row = 0; row < lost.size(); ++row) {
        const std::uint32_t frame = layout.frame(group, lost[row]);
        restored += gathering.store(layout.offset(frame),
                                    std::span(equations[row].sum).first(layout.length(frame)));
    }
    return restored;
}

}  // namespace kcdata::serial
