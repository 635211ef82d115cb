#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tools/snapshot.hpp"

namespace tools {

/// The images of a capture, each once, and which of them an address lies in: the one that begins
/// nearest below, as captures do not tell sizes; none if that is a lot further below than images
/// are large. The Snapshot lives longer.
class Images {
  public:
    enum class Kind : std::uint8_t {
        process,             ///< a program, or a library outside of shared caches
        shared_cache,        ///< a shared cache as a whole
        shared_cache_image,  ///< an image in the system's shared cache
        kernel,              ///< the kernel, with what is linked to it
        kernel_extension,    ///< an extension, or the kernel where it is one image of several
        kernel_text_exec,    ///< the code of one of these
    };
    struct Image {
        Kind kind = Kind::process;
        LoadInfo info{};
    };

    explicit Images(const Snapshot& snapshot);

    const std::vector<Image>& all() const { return all_; }
    /// The index of the image that an address of the kernel lies in.
    std::optional<std::size_t> find_kernel(std::uint64_t address) const {
        return find(kernel_, address);
    }
    /// The index of the image that an address of `task`, one of the snapshot's, lies in.
    std::optional<std::size_t> find_user(const TaskSnapshot& task, std::uint64_t address) const {
        return find(tasks_[static_cast<std::size_t>(&task - snapshot_.tasks.data())], address);
    }

  private:
    /// Where images begin, and their indices.
    using Map = std::map<std::uint64_t, std::size_t>;
    using Known = std::map<std::pair<std::uint64_t, std::array<std::uint8_t, 16>>, std::size_t>;

    std::optional<std::size_t> find(const Map& map, std::uint64_t address) const;
    void add(Map& map, Known& known, Kind kind, const LoadInfo& info);

    const Snapshot& snapshot_;
    std::vector<Image> all_{};
    Map kernel_{};
    /// One for each task.
    std::vector<Map> tasks_{};
};

}  // namespace tools
