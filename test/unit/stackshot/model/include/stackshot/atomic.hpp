#pragma once

#include "test/unit/stackshot/model/memory.hpp"

// In place of stackshot/atomic.hpp, in builds that have this folder first in their include path.
namespace stackshot {

template <typename T>
using Atomic = model::Atomic<T>;
template <typename T>
using Published = model::Published<T>;

}  // namespace stackshot
