#include "tools/images.hpp"

#include <iterator>

#include "kcdata/records.hpp"

namespace tools {

Images::Images(const Snapshot& snapshot) : snapshot_(snapshot) {
    Known known;
    Map system_cache;
    if (snapshot.kernel)
        add(kernel_, known, Kind::kernel, *snapshot.kernel);
    if (snapshot.shared_cache)
        add(system_cache, known, Kind::shared_cache, *snapshot.shared_cache);
    for (const LoadInfo& info : snapshot.shared_cache_images)
        add(system_cache, known, Kind::shared_cache_image, info);
    for (const TaskSnapshot& task : snapshot.tasks) {
        Map& map = tasks_.emplace_back();
        if (task.pid == 0) {
            for (const LoadInfo& info : task.images)
                add(kernel_, known, Kind::kernel_extension, info);
            for (const LoadInfo& info : task.text_exec_images)
                add(kernel_, known, Kind::kernel_text_exec, info);
            continue;
        }
        for (const LoadInfo& info : task.images)
            add(map, known, Kind::process, info);
        constexpr std::uint64_t not_the_system_cache =
            kcdata::kTaskSharedRegionNone | kcdata::kTaskSharedRegionOther;
        if (task.shared_cache)
            add(map, known, Kind::shared_cache, *task.shared_cache);
        else if ((task.ss_flags.value_or(0) & not_the_system_cache) == 0)
            map.insert(system_cache.begin(), system_cache.end());
    }
}

std::optional<std::size_t> Images::find(const Map& map, std::uint64_t address) const {
    // Where a capture does not tell the base of the shared cache, its addresses are in none of the
    // images below. Caches and kernels are larger.
    constexpr std::uint64_t largest_image = 1 << 28;
    const auto next = map.upper_bound(address);
    if (next == map.begin())
        return std::nullopt;
    const auto& [begin, index] = *std::prev(next);
    const Kind kind = all_[index].kind;
    const bool small = kind == Kind::process || kind == Kind::shared_cache_image;
    return small && address - begin >= largest_image ? std::nullopt : std::optional(index);
}

void Images::add(Map& map, Known& known, Kind kind, const LoadInfo& info) {
    const auto [found, is_new] = known.try_emplace({info.address, info.uuid}, all_.size());
    if (is_new)
        all_.push_back({kind, info});
    map.emplace(info.address, found->second);
}

}  // namespace tools
