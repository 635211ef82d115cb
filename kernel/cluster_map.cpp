#include "kernel/cluster_map.hpp"

#include <algorithm>

namespace kernel {
namespace {

using stackshot::ClusterType;

/// Tells P cores from E cores.
class Capacities {
  public:
    explicit Capacities(const platform::Board& board) {
        for (const platform::Cpu& cpu : board.cpus) {
            largest_ = std::max<std::uint64_t>(largest_, cpu.capacity);
            if (cpu.capacity != 0)
                smallest_ = std::min<std::uint64_t>(smallest_, cpu.capacity);
        }
    }

    ClusterType type_of(const platform::Cpu& cpu) const {
        if (largest_ <= smallest_)
            return ClusterType::SMP;
        return cpu.capacity == 0 || 2 * std::uint64_t{cpu.capacity} > largest_ + smallest_
                   ? ClusterType::P
                   : ClusterType::E;
    }

  private:
    std::uint64_t largest_ = 0;
    std::uint64_t smallest_ = UINT64_MAX;
};

/// False if there are more clusters than there is room for. `apart`: clusters of the tree are told
/// apart, not only kinds.
bool map_clusters(const platform::Board& board, bool apart, ClusterMap& map) {
    const Capacities capacities(board);
    std::array<std::uint32_t, stackshot::max_clusters> tree_clusters{};
    map.count = 0;
    for (std::size_t cpu = 0; cpu < board.cpus.size(); ++cpu) {
        const ClusterType type = capacities.type_of(board.cpus[cpu]);
        const std::uint32_t tree_cluster = apart ? board.cpus[cpu].cluster : 0;
        std::uint32_t cluster = 0;
        while (cluster < map.count &&
               (tree_clusters[cluster] != tree_cluster || map.types[cluster] != type))
            ++cluster;
        if (cluster == stackshot::max_clusters)
            return false;
        tree_clusters[cluster] = tree_cluster;
        map.types[cluster] = type;
        map.count = std::max(map.count, cluster + 1);
        map.cluster_of_cpu[cpu] = static_cast<std::uint8_t>(cluster);
    }
    return true;
}

}  // namespace

ClusterMap map_clusters(const platform::Board& board) {
    ClusterMap map;
    if (!map_clusters(board, true, map))
        (void)map_clusters(board, false, map);
    return map;
}

}  // namespace kernel
