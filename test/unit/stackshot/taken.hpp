#pragma once

#include <catch2/catch_test_macros.hpp>
#include <span>
#include <vector>

#include "fake_system.hpp"
#include "parsed.hpp"
#include "stackshot/stackshot.hpp"

/// A capture that has to succeed and be sound. Frees its buffer when it goes.
class Taken {
  public:
    Taken(FakeSystem& system, const stackshot::Request& request)
        : system_(system), result_(stackshot::take_stackshot(system, request)) {
        INFO(kcdata::kern_return_name(result_.error()));
        REQUIRE(result_.ok());
        parsed = parse(result_->data());
        REQUIRE(parsed.error == kcdata::ReadError::none);
        tasks = tasks_of(parsed);
    }
    ~Taken() { system_.free(result_->buffer); }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;

    const stackshot::Statistics& statistics() const { return result_.value().statistics; }
    std::size_t size() const { return result_.value().size; }
    std::span<const std::byte> data() const { return result_.value().data(); }

    Parsed parsed{};
    std::vector<ParsedTask> tasks{};

  private:
    FakeSystem& system_;
    kcdata::Result<stackshot::Stackshot> result_;
};

/// Lets each read of a capture fail in turn: KERN_FAILURE each time, and nothing is lost. How many
/// captures failed.
inline std::size_t fail_each_read(FakeSystem& system, const stackshot::Request& request) {
    std::size_t failures = 0;
    for (std::size_t n = 1;; ++n) {
        REQUIRE(n < 1000);
        system.failing_read = n;
        auto taken = stackshot::take_stackshot(system, request);
        const bool fewer = system.failing_read != 0;
        system.failing_read = 0;
        if (taken.ok())
            system.free(taken->buffer);
        else
            CHECK(taken.error() == kcdata::KERN_FAILURE);
        REQUIRE(system.live_bytes() == 0);
        if (!taken.ok())
            ++failures;
        else if (fewer)
            return failures;
    }
}
