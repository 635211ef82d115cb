#pragma once

#include <atomic>

namespace stackshot {

/// What the CPUs of a capture share goes by these two names. A test build puts another header in
/// this one's place, whose operations a scheduler interleaves and watches
/// (test/unit/stackshot/model).
template <typename T>
using Atomic = std::atomic<T>;

/// Plain data that one CPU writes and another reads, ordered by an Atomic between them.
template <typename T>
using Published = T;

}  // namespace stackshot
