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
