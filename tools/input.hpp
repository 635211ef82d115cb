#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/failure.hpp"
#include "tools/spool.hpp"

namespace tools {

/// A file of captures, as it comes: one or more kcdata buffers one behind the other, each plain or
/// compressed (BEGIN_COMPRESSED); as they are, or packed by gzip or written in base64, in any
/// order up to four times; 16 bytes of a ktrace chunk may stand in front. Files are mapped,
/// everything else goes through a Spool: of the bytes, few are ever in memory.
class Input {
  public:
    static constexpr std::uint64_t default_limit = std::uint64_t{4} << 30;

    struct Buffer {
        /// From BEGIN to BUFFER_END; or to the end of the data, if that comes first. Never
        /// compressed.
        std::span<const std::byte> bytes{};
        /// Where it begins in the data, when that is unpacked.
        std::uint64_t offset = 0;
    };

    /// `path` - is standard input. `limit`: bytes that all of it may have after unpacking, and that
    /// what is not a file may have at all. What has no buffer, or too much, is a Failure.
    static Expected<Input> open(const std::string& path, std::uint64_t limit = default_limit);

    /// The same, but without a look for buffers: data() is for who looks at every byte.
    static Expected<Input> open_packed(const std::string& path,
                                       std::uint64_t limit = default_limit);
    /// What open() does, for bytes that are in memory already.
    static Expected<Input> of(std::vector<std::byte> bytes, const std::string& name,
                              std::uint64_t limit = default_limit);

    /// All bytes, beginning with a buffer; compressed buffers are compressed here.
    std::span<const std::byte> data() const { return data_.get(); }
    /// At least one.
    const std::vector<Buffer>& buffers() const { return buffers_; }
    /// What kept parts of the input from being read.
    const std::vector<std::string>& problems() const { return problems_; }
    /// What stands between and behind the buffers; none if all of that is zero. Nothing says that
    /// it should mean anything.
    const std::vector<std::string>& remarks() const { return remarks_; }

  private:
    class Opener;

    HeldBytes data_{};
    HeldBytes inflated_{};
    std::vector<Buffer> buffers_{};
    std::vector<std::string> problems_{};
    std::vector<std::string> remarks_{};
};

}  // namespace tools
