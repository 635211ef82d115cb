#pragma once

#include <array>
#include <cstdint>

#include "platform/arm64/devicetree/board.hpp"
#include "stackshot/system.hpp"

namespace kernel {

/// The clusters of a machine as the collector counts them: CPUs of one cluster of the device tree
/// and of one kind are together.
///
/// Where the tree gives CPUs different capacities, those nearer to the largest one are P cores and
/// the others E cores; a CPU without a capacity counts as one with the largest. A machine with more
/// such clusters than stackshot::max_clusters has one for each kind.
struct ClusterMap {
    std::uint32_t count = 1;
    std::array<stackshot::ClusterType, stackshot::max_clusters> types{};
    std::array<std::uint8_t, stackshot::max_cpus> cluster_of_cpu{};
};

/// Any context; allocates nothing.
ClusterMap map_clusters(const platform::Board& board);

}  // namespace kernel
