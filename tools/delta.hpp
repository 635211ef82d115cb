#pragma once

#include <string>

#include "tools/snapshot.hpp"

namespace tools {

/// Completes `delta` from `base`, a capture (complete itself) taken before: unchanged threads and
/// tasks get what only `base` tells of them (names, times, stacks, images), and such threads move
/// to TaskSnapshot::threads, with ThreadSnapshot::unchanged set.
///
/// `base` has to be from the time the delta goes on from, or later. Returns what could not be
/// completed, in words; empty: all could. Does nothing to a capture that is no delta.
std::string complete_delta(Snapshot& delta, const Snapshot& base);

}  // namespace tools
