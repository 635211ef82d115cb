#include "kernel/cluster_map.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using kernel::ClusterMap;
using kernel::map_clusters;
using stackshot::ClusterType;

namespace {

struct TreeCpu {
    std::uint32_t cluster;
    std::uint32_t capacity;
};

ClusterMap map_of(const std::vector<TreeCpu>& cpus) {
    platform::Board board;
    for (const TreeCpu& cpu : cpus) {
        platform::Cpu node;
        node.cluster = cpu.cluster;
        node.capacity = cpu.capacity;
        REQUIRE(board.cpus.push_back(node));
    }
    return map_clusters(board);
}

}  // namespace

TEST_CASE("CPUs without or with equal capacities are SMP") {
    for (const std::uint32_t capacity : {0U, 1024U}) {
        const ClusterMap map = map_of({{0, capacity}, {0, capacity}, {1, capacity}, {1, capacity}});
        CHECK(map.count == 2);
        CHECK(map.types[0] == ClusterType::SMP);
        CHECK(map.types[1] == ClusterType::SMP);
        CHECK(map.cluster_of_cpu[1] == 0);
        CHECK(map.cluster_of_cpu[2] == 1);
    }
}

TEST_CASE("the CPUs of the larger capacity are P cores, the others E cores") {
    // As on Juno r2: two Cortex-A72, four Cortex-A53.
    const ClusterMap map = map_of({{1, 485}, {0, 1024}, {0, 1024}, {1, 485}, {1, 485}, {1, 485}});
    CHECK(map.count == 2);
    CHECK(map.types[0] == ClusterType::E);
    CHECK(map.types[1] == ClusterType::P);
    const std::uint8_t expected[] = {0, 1, 1, 0, 0, 0};
    for (std::size_t cpu = 0; cpu < 6; ++cpu)
        CHECK(map.cluster_of_cpu[cpu] == expected[cpu]);
}

TEST_CASE("with three capacities, the one between belongs to the kind it is nearer to") {
    const ClusterMap map = map_of({{0, 250}, {1, 870}, {2, 1024}});
    CHECK(map.count == 3);
    CHECK(map.types[0] == ClusterType::E);
    CHECK(map.types[1] == ClusterType::P);
    CHECK(map.types[2] == ClusterType::P);
}

TEST_CASE("kinds are told apart without a cpu-map, and a CPU without a capacity is a P core") {
    const ClusterMap map = map_of({{0, 0}, {0, 300}, {0, 800}});
    CHECK(map.count == 2);
    CHECK(map.types[map.cluster_of_cpu[0]] == ClusterType::P);
    CHECK(map.types[map.cluster_of_cpu[1]] == ClusterType::E);
    CHECK(map.cluster_of_cpu[0] == map.cluster_of_cpu[2]);
}

TEST_CASE("a machine with more clusters than there is room for has one for each kind") {
    std::vector<TreeCpu> cpus;
    for (std::uint32_t n = 0; n < 32; ++n)
        cpus.push_back({n / 2, n < 16 ? 500U : 1000U});
    const ClusterMap map = map_of(cpus);
    CHECK(map.count == 2);
    for (std::size_t cpu = 0; cpu < 32; ++cpu) {
        CHECK(map.cluster_of_cpu[cpu] == (cpu < 16 ? 0 : 1));
        CHECK(map.types[map.cluster_of_cpu[cpu]] == (cpu < 16 ? ClusterType::E : ClusterType::P));
    }
}
