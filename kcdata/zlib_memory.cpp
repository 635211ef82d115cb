#include "kcdata/zlib_memory.hpp"

#include <cstdint>

namespace kcdata {

voidpf ZlibMemory::allocate(voidpf opaque, uInt items, uInt size) {
    auto& self = *static_cast<ZlibMemory*>(opaque);
    std::byte* const free = self.memory_.data() + self.used_;
    const std::size_t padding = padding_for(reinterpret_cast<std::uintptr_t>(free));
    // Two 32-bit numbers: the product fits.
    const std::size_t wanted = std::size_t{items} * size;
    const std::size_t left = self.memory_.size() - self.used_;
    if (left < padding || left - padding < wanted)
        return nullptr;
    self.used_ += padding + wanted;
    return free + padding;
}

}  // namespace kcdata
