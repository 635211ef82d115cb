#include "stackshot/request.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstring>
#include <vector>

using namespace kcdata;
using namespace stackshot;

namespace {

stackshot_config config_with(std::uint64_t flags) {
    stackshot_config config{};
    config.sc_pid = -1;
    config.sc_flags = flags;
    config.sc_out_buffer_addr = 0x1000;
    config.sc_out_size_addr = 0x2000;
    return config;
}

/// What a request ends with that a task, or the kernel, makes with this configuration.
kern_return outcome(Origin origin, const stackshot_config& config,
                    const AdmissionPolicy& policy = {}, std::uint32_t version = 1) {
    return validate_request(origin, policy, version, std::as_bytes(std::span(&config, 1))).error();
}
kern_return outcome(Origin origin, std::uint64_t flags, const AdmissionPolicy& policy = {}) {
    return outcome(origin, config_with(flags), policy);
}

/// Fails checks 8 to 13, if from the kernel, 9 to 13 if from a task; and each that is named.
stackshot_config everything_wrong(std::uint64_t flags = 0) {
    stackshot_config config{};
    config.sc_pid = -1;
    config.sc_flags = STACKSHOT_EXCLAVES | STACKSHOT_SKIP_EXCLAVES | flags;
    config.sc_delta_timestamp = 1;
    return config;
}

}  // namespace

TEST_CASE("a sound config becomes a request") {
    stackshot_config config = config_with(STACKSHOT_KCDATA_FORMAT | 0x10);
    config.sc_pid = 12;
    config.sc_size = 345;
    config.sc_pagetable_mask = 3;
    auto request = validate_request(Origin::user, {}, 1, std::as_bytes(std::span(&config, 1)));
    REQUIRE(request.ok());
    CHECK(request->pid == 12);
    // Unknown bits pass silently, as in XNU, and are shown.
    CHECK(request->flags == (STACKSHOT_KCDATA_FORMAT | 0x10));
    CHECK(request->in_flags() == (STACKSHOT_KCDATA_FORMAT | 0x10));
    CHECK(request->size_hint == 345);
    CHECK(request->out_buffer_address == 0x1000);
    CHECK(request->out_size_address == 0x2000);
    // Without STACKSHOT_PAGE_TABLES nobody asked for levels.
    CHECK(request->pagetable_mask == 0);
    config.sc_flags |= STACKSHOT_PAGE_TABLES | STACKSHOT_COLLECT_DELTA_SNAPSHOT;
    config.sc_delta_timestamp = 99;
    request = validate_request(Origin::user, {}, 1, std::as_bytes(std::span(&config, 1)));
    REQUIRE(request.ok());
    CHECK(request->pagetable_mask == 3);
    CHECK(request->delta_timestamp == 99);
    CHECK(request->begin_magic() == KCDATA_BUFFER_BEGIN_DELTA_STACKSHOT);
}

TEST_CASE("check 1: a missing config is KERN_INVALID_ARGUMENT, before the feature override") {
    AdmissionPolicy policy;
    policy.feature_override = true;
    CHECK(validate_request(Origin::user, policy, 0, {}).error() == KERN_INVALID_ARGUMENT);
    CHECK(validate_request(Origin::kernel, {}, 1, {}).error() == KERN_INVALID_ARGUMENT);
}

TEST_CASE("check 2: the feature override refuses everything, before the size is looked at") {
    AdmissionPolicy policy;
    policy.feature_override = true;
    const std::vector<std::byte> config(63);
    CHECK(validate_request(Origin::user, policy, 1, config).error() == KERN_NOT_SUPPORTED);
    CHECK(outcome(Origin::user, STACKSHOT_KCDATA_FORMAT, policy) == KERN_NOT_SUPPORTED);
    policy.feature_override = false;
    CHECK(outcome(Origin::user, STACKSHOT_KCDATA_FORMAT, policy) == KERN_SUCCESS);
}

TEST_CASE("check 3: only version 1 is known, whatever the size") {
    const std::vector<std::byte> config(63);
    for (const std::uint32_t version : {0U, 2U, UINT32_MAX}) {
        CHECK(validate_request(Origin::user, {}, version, config).error() == KERN_NOT_SUPPORTED);
        CHECK(outcome(Origin::user, config_with(STACKSHOT_KCDATA_FORMAT), {}, version) ==
              KERN_NOT_SUPPORTED);
    }
}

TEST_CASE("check 4: the size is exactly that of the configuration, before any flag counts") {
    std::vector<std::byte> config(sizeof(stackshot_config) + 8);
    const auto wrong = everything_wrong(STACKSHOT_TRYLOCK);
    std::memcpy(config.data(), &wrong, sizeof(wrong));
    for (const std::size_t size : {0U, 63U, 65U, 72U})
        CHECK(validate_request(Origin::user, {}, 1, std::span(config).first(size)).error() ==
              KERN_INVALID_ARGUMENT);
}

TEST_CASE("check 5: any size hint is accepted; one above the maximum is no error") {
    stackshot_config config = config_with(STACKSHOT_KCDATA_FORMAT);
    config.sc_size = UINT32_MAX;
    CHECK(outcome(Origin::user, config) == KERN_SUCCESS);
}

TEST_CASE("check 6: what is for the kernel only a task gets KERN_NO_ACCESS for, first of all") {
    for (const std::uint64_t flag :
         {STACKSHOT_TRYLOCK, STACKSHOT_SAVE_IN_KERNEL_BUFFER, STACKSHOT_FROM_PANIC}) {
        CHECK(outcome(Origin::user, STACKSHOT_KCDATA_FORMAT | flag) == KERN_NO_ACCESS);
        CHECK(outcome(Origin::user, everything_wrong(flag)) == KERN_NO_ACCESS);
        CHECK(outcome(Origin::kernel, STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_IN_KERNEL_BUFFER |
                                          flag) == KERN_SUCCESS);
    }
}

TEST_CASE("check 7: a release kernel does not compress for tasks, whatever else is wrong") {
    AdmissionPolicy release;
    release.development = false;
    const std::uint64_t flags = STACKSHOT_KCDATA_FORMAT | STACKSHOT_DO_COMPRESS;
    CHECK(outcome(Origin::user, flags, release) == KERN_NO_ACCESS);
    CHECK(outcome(Origin::user, everything_wrong(STACKSHOT_DO_COMPRESS), release) ==
          KERN_NO_ACCESS);
    CHECK(outcome(Origin::user, flags) == KERN_SUCCESS);
    CHECK(outcome(Origin::kernel, flags | STACKSHOT_SAVE_IN_KERNEL_BUFFER, release) ==
          KERN_SUCCESS);
}

TEST_CASE("check 8: the kernel has to save its result") {
    CHECK(outcome(Origin::kernel, STACKSHOT_KCDATA_FORMAT) == KERN_NOT_SUPPORTED);
    CHECK(outcome(Origin::kernel, STACKSHOT_RETRIEVE_EXISTING_BUFFER) == KERN_NOT_SUPPORTED);
    CHECK(outcome(Origin::user, STACKSHOT_KCDATA_FORMAT) == KERN_SUCCESS);
}

TEST_CASE("check 9: the format is kcdata, or what is retained is retrieved") {
    CHECK(outcome(Origin::user, std::uint64_t{0}) == KERN_NOT_SUPPORTED);
    CHECK(outcome(Origin::user, STACKSHOT_GET_BOOT_PROFILE) == KERN_NOT_SUPPORTED);
    // Before what excludes each other and what is missing.
    CHECK(outcome(Origin::user, everything_wrong()) == KERN_NOT_SUPPORTED);
    CHECK(outcome(Origin::user, STACKSHOT_RETRIEVE_EXISTING_BUFFER) == KERN_SUCCESS);
    CHECK(outcome(Origin::kernel, STACKSHOT_SAVE_IN_KERNEL_BUFFER) == KERN_NOT_SUPPORTED);
}

TEST_CASE("check 10: neither a delta nor page tables can be compressed") {
    for (const std::uint64_t flag : {STACKSHOT_COLLECT_DELTA_SNAPSHOT, STACKSHOT_PAGE_TABLES}) {
        const std::uint64_t flags = STACKSHOT_KCDATA_FORMAT | STACKSHOT_DO_COMPRESS | flag;
        CHECK(outcome(Origin::user, flags) == KERN_NOT_SUPPORTED);
        CHECK(outcome(Origin::user, everything_wrong(flags)) == KERN_NOT_SUPPORTED);
        CHECK(outcome(Origin::user, flags & ~STACKSHOT_DO_COMPRESS) == KERN_SUCCESS);
    }
}

TEST_CASE("check 11: both output addresses are there, unless the result is saved") {
    const bool buffer = GENERATE(true, false);
    stackshot_config config = config_with(STACKSHOT_KCDATA_FORMAT);
    (buffer ? config.sc_out_buffer_addr : config.sc_out_size_addr) = 0;
    CHECK(outcome(Origin::user, config) == KERN_INVALID_ARGUMENT);
    config.sc_flags |= STACKSHOT_RETRIEVE_EXISTING_BUFFER;
    CHECK(outcome(Origin::user, config) == KERN_INVALID_ARGUMENT);
    config.sc_flags |= STACKSHOT_SAVE_IN_KERNEL_BUFFER;
    CHECK(outcome(Origin::kernel, config) == KERN_SUCCESS);
}

TEST_CASE("check 12: a timestamp without the delta flag is an error, the flag without one is not") {
    stackshot_config config = config_with(STACKSHOT_KCDATA_FORMAT);
    config.sc_delta_timestamp = 1;
    CHECK(outcome(Origin::user, config) == KERN_INVALID_ARGUMENT);
    config.sc_flags |= STACKSHOT_COLLECT_DELTA_SNAPSHOT;
    CHECK(outcome(Origin::user, config) == KERN_SUCCESS);
    config.sc_delta_timestamp = 0;
    CHECK(outcome(Origin::user, config) == KERN_SUCCESS);
}

TEST_CASE("check 13: exclaves cannot be both wanted and skipped") {
    const std::uint64_t flags = STACKSHOT_KCDATA_FORMAT;
    CHECK(outcome(Origin::user, flags | STACKSHOT_EXCLAVES | STACKSHOT_SKIP_EXCLAVES) ==
          KERN_INVALID_ARGUMENT);
    CHECK(outcome(Origin::user, flags | STACKSHOT_EXCLAVES) == KERN_SUCCESS);
    CHECK(outcome(Origin::user, flags | STACKSHOT_SKIP_EXCLAVES) == KERN_SUCCESS);
}

TEST_CASE("what nothing is recorded for is accepted, and cleared from the flags that were met") {
    // As XNU clears the flags of features that are not built: these before anything is recorded...
    constexpr std::uint64_t cleared = STACKSHOT_SAVE_KEXT_LOADINFO;
    // ...and these during the capture.
    constexpr std::uint64_t unmet =
        STACKSHOT_ENABLE_BT_FAULTING | STACKSHOT_COLLECT_SHAREDCACHE_LAYOUT |
        STACKSHOT_ENABLE_UUID_FAULTING | STACKSHOT_ASID | STACKSHOT_PAGE_TABLES |
        STACKSHOT_SAVE_DYLD_COMPACTINFO | STACKSHOT_EXCLAVES;
    const Request everything{Request::all_pids, UINT64_MAX};
    CHECK(everything.in_flags() == ~cleared);
    CHECK(everything.out_flags() == ~(cleared | unmet));
}

TEST_CASE("a pid alone makes a capture process-scoped") {
    CHECK_FALSE(Request{}.process_scoped());
    CHECK(Request{5, STACKSHOT_KCDATA_FORMAT}.process_scoped());
    CHECK_FALSE(Request{5, STACKSHOT_INCLUDE_DRIVER_THREADS_IN_KERNEL}.process_scoped());
}
