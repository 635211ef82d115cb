#pragma once

#include <zlib.h>

#include <cstddef>
#include <span>

#include "kcdata/format.hpp"

namespace kcdata {

/// Memory for one zlib stream at a time: pieces are cut from a span, and given back all at once.
class ZlibMemory {
  public:
    /// `memory` outlives the streams that use it.
    explicit ZlibMemory(std::span<std::byte> memory) : memory_(memory) {}
    ZlibMemory(const ZlibMemory&) = delete;
    ZlibMemory& operator=(const ZlibMemory&) = delete;

    /// Makes `stream` take its memory from here, all of which is free again.
    void serve(z_stream& stream) {
        used_ = 0;
        stream.zalloc = allocate;
        stream.zfree = [](voidpf, voidpf) {};
        stream.opaque = this;
    }

    /// Bytes cut so far, what alignment lost included.
    std::size_t used() const { return used_; }

  private:
    static voidpf allocate(voidpf opaque, uInt items, uInt size);

    std::span<std::byte> memory_;
    std::size_t used_ = 0;
};

}  // namespace kcdata
