#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace kernel::heap {

/// `size` bytes of zeroed memory aligned to 16, or nullptr if there is none. Small pieces come from
/// pages cut into pieces of one size class, larger ones in whole pages. Any context but a stop.
void* allocate(std::size_t size);
/// Frees what allocate() returned; nullptr is nothing. A pointer that is not an allocated piece is
/// a CHECK.
void free(void* memory);

/// A new T, or nullptr if there is no memory.
template <typename T, typename... Arguments>
T* create(Arguments&&... arguments) {
    static_assert(alignof(T) <= 16);
    void* memory = allocate(sizeof(T));
    return memory != nullptr ? ::new (memory) T(std::forward<Arguments>(arguments)...) : nullptr;
}
/// Destroys and frees what create() returned.
template <typename T>
void destroy(T* object) {
    if (object == nullptr)
        return;
    object->~T();
    heap::free(object);
}

}  // namespace kernel::heap
