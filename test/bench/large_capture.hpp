#pragma once

#include <cstddef>
#include <vector>

namespace bench {

/// A stackshot of about `size` bytes, always the same: thousands of tasks, some with one thread and
/// some with a hundred; records, lengths of stacks and texts as in stackshots of macOS, and those
/// that only the unikernel writes.
std::vector<std::byte> large_capture(std::size_t size);

}  // namespace bench
