#include "stackshot/bsd.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "fake_map.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "parsed.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

constexpr std::uint64_t config_address = 0x5000;
constexpr std::uint64_t buffer_cell = 0x1000;
constexpr std::uint64_t size_cell = 0x2000;
constexpr Credential root{0, entitlement_stackshot};

struct Bench {
    explicit Bench(const AdmissionPolicy& policy = {}) : subsystem(system, policy) {
        system.add_task("kernel_task", 3, 3);
        map.memory(buffer_cell, 8);
        map.memory(size_cell, 4);
        set(STACKSHOT_KCDATA_FORMAT);
    }
    void set(std::uint64_t flags) {
        stackshot_config config{};
        config.sc_pid = -1;
        config.sc_flags = flags;
        config.sc_out_buffer_addr = buffer_cell;
        config.sc_out_size_addr = size_cell;
        std::memcpy(map.memory(config_address, sizeof(config)).data(), &config, sizeof(config));
    }
    bsd_errno call(const Credential& credential = root, std::uint32_t version = 1,
                   std::uint64_t address = config_address,
                   std::size_t size = sizeof(stackshot_config)) {
        return stack_snapshot_with_config(subsystem, {credential, map}, version, address, size);
    }

    FakeSystem system{2};
    Subsystem subsystem;
    FakeMap map{system};
};

}  // namespace

TEST_CASE("the call takes a capture on behalf of the superuser") {
    Bench bench;
    REQUIRE(bench.call() == BSD_SUCCESS);
    const auto address = bench.map.value<std::uint64_t>(buffer_cell);
    const auto size = bench.map.value<std::uint32_t>(size_cell);
    CHECK(parse(bench.map.mappings().at(address).pages.first(size)).error == ReadError::none);
}

TEST_CASE("what stands in the way of a call is found in XNU's order") {
    AdmissionPolicy policy;
    policy.entitlement = EntitlementPolicy::refuse;
    Bench bench(policy);
    // Not the superuser, before anything.
    CHECK(bench.call({501, entitlement_stackshot}, 9, 0, 1) == BSD_EPERM);
    // Not entitled, before the arguments.
    CHECK(bench.call({0, 0}, 9, 0, 1) == BSD_EPERM);
    CHECK(bench.call({0, entitlement_stackshot_stats}, 9, 0, 1) == BSD_EPERM);
    CHECK(bench.call(root, 9, 0, 1) == BSD_EINVAL);
    CHECK(bench.call(root, 9, 0x666, 1) == BSD_ENOTSUP);
    for (const std::size_t size : {0U, 1U, 63U, 65U})
        CHECK(bench.call(root, 1, 0x666, size) == BSD_EINVAL);
    CHECK(bench.call(root, 1, 0x666) == BSD_EFAULT);
    CHECK(bench.system.traps() == 0);
    CHECK(bench.call() == BSD_SUCCESS);
}

TEST_CASE("without the entitlement a superuser is refused or reported, as the policy says") {
    CHECK(reportable({0, 0}));
    CHECK_FALSE(reportable(root));
    CHECK_FALSE(reportable({501, 0}));
    AdmissionPolicy policy;
    Bench reporting(policy);
    CHECK(reporting.call({0, 0}) == BSD_SUCCESS);
    policy.entitlement = EntitlementPolicy::refuse;
    Bench refusing(policy);
    CHECK(refusing.call({0, 0}) == BSD_EPERM);
    CHECK(refusing.call(root) == BSD_SUCCESS);
}

TEST_CASE("the feature override refuses a call whose arguments are sound") {
    AdmissionPolicy policy;
    policy.feature_override = true;
    Bench bench(policy);
    CHECK(bench.call() == BSD_ENOTSUP);
    CHECK(bench.call(root, 1, config_address, 63) == BSD_EINVAL);
}

TEST_CASE("each way a request ends has its errno") {
    Bench bench;
    bench.set(STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_IN_KERNEL_BUFFER);
    CHECK(bench.call() == BSD_EPERM);
    bench.set(0);
    CHECK(bench.call() == BSD_ENOTSUP);
    bench.set(STACKSHOT_KCDATA_FORMAT | STACKSHOT_EXCLAVES | STACKSHOT_SKIP_EXCLAVES);
    CHECK(bench.call() == BSD_EINVAL);
    bench.set(STACKSHOT_RETRIEVE_EXISTING_BUFFER);
    CHECK(bench.call() == BSD_ENOENT);
    bench.set(STACKSHOT_KCDATA_FORMAT);
    bench.system.failing_allocation = 1;
    CHECK(bench.call() == BSD_ENOMEM);
    bench.map.failing_map = 1;
    CHECK(bench.call() == BSD_ENOSPC);
    bench.system.tasks[0].facts_result = KERN_FAILURE;
    CHECK(bench.call() == BSD_EBUSY);
}

TEST_CASE("kern_return becomes errno by XNU's table, with XNU's numbers") {
    struct Row {
        kern_return from;
        int to;
    };
    const Row row = GENERATE(
        Row{KERN_SUCCESS, 0}, Row{KERN_RESOURCE_SHORTAGE, 12},
        Row{KERN_INSUFFICIENT_BUFFER_SIZE, 28}, Row{KERN_NO_SPACE, 28}, Row{KERN_NO_ACCESS, 1},
        Row{KERN_MEMORY_PRESENT, 17}, Row{KERN_NOT_SUPPORTED, 45}, Row{KERN_NOT_IN_SET, 2},
        Row{KERN_ABORTED, 4}, Row{KERN_FAILURE, 16}, Row{KERN_OPERATION_TIMED_OUT, 60},
        Row{KERN_INVALID_ARGUMENT, 22}, Row{KERN_LOCK_OWNED, 22}, Row{KERN_INVALID_ADDRESS, 22});
    CHECK(static_cast<int>(bsd_error(row.from)) == row.to);
}

TEST_CASE("statistics are for the superuser and for who is entitled, and nobody writes them") {
    Bench bench;
    REQUIRE(bench.call() == BSD_SUCCESS);
    SubsystemStatistics statistics;
    CHECK(stackshot_stats(bench.subsystem, {501, entitlement_stackshot}, false, statistics) ==
          BSD_EPERM);
    CHECK(stackshot_stats(bench.subsystem, root, true, statistics) == BSD_EPERM);
    CHECK(statistics.count == 0);
    CHECK(stackshot_stats(bench.subsystem, {501, entitlement_stackshot_stats}, false, statistics) ==
          BSD_SUCCESS);
    CHECK(statistics.count == 1);
    CHECK(stackshot_stats(bench.subsystem, {0, 0}, false, statistics) == BSD_SUCCESS);
}
