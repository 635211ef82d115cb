#include "stackshot/request.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace kcdata;
using namespace stackshot;

namespace {

Result<Request> validate(const stackshot_config& config, std::uint32_t version = 1) {
    return validate_request(version, std::as_bytes(std::span(&config, 1)));
}

stackshot_config config_with(std::uint64_t flags) {
    stackshot_config config{};
    config.sc_pid = -1;
    config.sc_flags = flags;
    return config;
}

}  // namespace

TEST_CASE("a sound config becomes a request") {
    stackshot_config config = config_with(STACKSHOT_KCDATA_FORMAT | 0x10);
    config.sc_pid = 12;
    config.sc_size = 345;
    auto request = validate(config);
    REQUIRE(request.ok());
    CHECK(request->pid == 12);
    // Unknown bits pass silently, as in XNU.
    CHECK(request->flags == (STACKSHOT_KCDATA_FORMAT | 0x10));
    CHECK(request->size_hint == 345);
}

TEST_CASE("checks fail with XNU's errors, an earlier one before a later one") {
    const auto everything_wrong = config_with(STACKSHOT_EXCLAVES | STACKSHOT_SKIP_EXCLAVES);
    CHECK(validate(everything_wrong, 0).error() == KERN_NOT_SUPPORTED);
    CHECK(validate(everything_wrong, 2).error() == KERN_NOT_SUPPORTED);
    std::vector<std::byte> config(sizeof(stackshot_config) + 8);
    for (const std::size_t size : {0U, 63U, 65U, 72U})
        CHECK(validate_request(1, std::span(config).first(size)).error() == KERN_INVALID_ARGUMENT);

    // Neither KCDATA_FORMAT nor a retrieve comes before what excludes each other.
    CHECK(validate(everything_wrong).error() == KERN_NOT_SUPPORTED);
    CHECK(validate(
              config_with(STACKSHOT_KCDATA_FORMAT | STACKSHOT_EXCLAVES | STACKSHOT_SKIP_EXCLAVES))
              .error() == KERN_INVALID_ARGUMENT);
    CHECK(validate(config_with(STACKSHOT_KCDATA_FORMAT | STACKSHOT_EXCLAVES)).ok());

    auto delta = config_with(STACKSHOT_KCDATA_FORMAT);
    delta.sc_delta_timestamp = 1;
    CHECK(validate(delta).error() == KERN_INVALID_ARGUMENT);
    // Compression of a delta is refused before the timestamp is looked at.
    delta.sc_flags |= STACKSHOT_DO_COMPRESS | STACKSHOT_COLLECT_DELTA_SNAPSHOT;
    CHECK(validate(delta).error() == KERN_NOT_SUPPORTED);
}

TEST_CASE("what is not built is refused, not ignored") {
    for (const std::uint64_t flag :
         {STACKSHOT_DO_COMPRESS, STACKSHOT_COLLECT_DELTA_SNAPSHOT, STACKSHOT_PAGE_TABLES,
          STACKSHOT_GET_BOOT_PROFILE, STACKSHOT_SAVE_IN_KERNEL_BUFFER,
          STACKSHOT_RETRIEVE_EXISTING_BUFFER, STACKSHOT_FROM_PANIC})
        CHECK(validate(config_with(STACKSHOT_KCDATA_FORMAT | flag)).error() == KERN_NOT_SUPPORTED);
}

TEST_CASE("a pid alone makes a capture process-scoped") {
    CHECK_FALSE(Request{}.process_scoped());
    CHECK(Request{5, STACKSHOT_KCDATA_FORMAT}.process_scoped());
    CHECK_FALSE(Request{5, STACKSHOT_INCLUDE_DRIVER_THREADS_IN_KERNEL}.process_scoped());
}
