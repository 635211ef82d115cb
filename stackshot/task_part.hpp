#pragma once

#include "stackshot/system.hpp"

namespace stackshot {

/// A part of a task: its threads from `first` up to `end`, which is not in it. ThreadRef::none is
/// the beginning or the end of the list; the part with the beginning has the task's own records in
/// front of the threads, the part with the end those behind. The parts of a task, one behind the
/// other, are the bytes of the whole.
struct TaskPart {
    ThreadRef first = ThreadRef::none;
    ThreadRef end = ThreadRef::none;
};

}  // namespace stackshot
