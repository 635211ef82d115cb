#include "tools/installation.hpp"

#include <filesystem>

namespace tools {

std::optional<std::string> find_companion(std::string_view name) {
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error)
        return std::nullopt;
    const auto above = program.parent_path().parent_path();
    for (const auto& folder : {above, above / "share" / "stackshot-unikernel"}) {
        const auto path = folder / name;
        if (std::filesystem::is_regular_file(path, error))
            return path.string();
    }
    return std::nullopt;
}

}  // namespace tools
