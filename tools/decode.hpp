#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/decode_plan.hpp"
#include "tools/json_emitter.hpp"

namespace tools {

/// What came of decoding a buffer.
struct Decoded {
    /// Problems beyond this many are counted only.
    static constexpr std::size_t told_problems = 100;

    /// Something was written. False: there is no buffer, or none that has a decoded form.
    bool written = false;
    /// "offset 0x..., item N, in CONTAINER/ID/...: what is wrong". None: complete and sound.
    std::vector<std::string> problems{};
    std::uint64_t problem_count = 0;
};

/// Writes the buffer that begins `buffer` as {root key: {...}} by libkdd's rules, and a line feed.
/// What stands before, between and (where the reader can go on) behind damage is written; whatever
/// is not is a problem.
///
/// Each container is read twice: once to see what keys it has, as libkdd joins lists wherever they
/// stand, and once to write it. Nothing is held of the document; memory is for the items and
/// containers that lie directly in the containers open at one time, some 40 bytes each.
Decoded decode(std::span<const std::byte> buffer, JsonEmitter& json,
               const DecodeOptions& options = {});

/// The same as lines: the first has all items that stand in no container, as {root key: {...}};
/// each container of the buffer follows as a line {container name: {id: {...}}}. `json` must not
/// indent.
Decoded decode_lines(std::span<const std::byte> buffer, JsonEmitter& json,
                     const DecodeOptions& options = {});

}  // namespace tools
