#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "kcdata/serial/host.hpp"
#include "kcdata/serial/target.hpp"
#include "test/unit/kcdata/link_model.hpp"

using namespace kcdata;
using namespace kcdata::serial;
using link_model::Link;
using link_model::Time;

namespace {

/// How many captures are sent at each rate of damage: a quarter of LINK_CAPTURES.
std::uint64_t captures_each() {
    const char* const wanted = std::getenv("LINK_CAPTURES");
    return (wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 30) / 4 + 1;
}

/// What the line carried beyond the capture itself, in parts of it.
struct Overhead {
    double forward = 0;
    double back = 0;
};

/// Takes a capture and pulls it, over a line with all that can happen to it.
Overhead transfer(std::uint64_t seed, const link_model::Damage& damage, std::size_t size) {
    constexpr std::uint32_t rates[] = {115200, 460800, 1'500'000, 3'000'000};
    Link link({.baud_rate = rates[seed % 4],
               .seed = seed,
               .damage = damage,
               .host = {.encoding = seed % 8 == 7 ? Encoding::text : Encoding::binary}});
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    link_model::Bytes capture(size);
    for (std::byte& byte : capture)
        byte = static_cast<std::byte>(random());
    link.commands_.next_capture_ = capture;

    constexpr Time limit = 3'600'000'000;
    REQUIRE(link.connect(limit));
    const StackshotRequest request{.flags = seed};
    REQUIRE(link.host_->request(Operation::stackshot, std::as_bytes(std::span(&request, 1)),
                                link.now_) == KERN_SUCCESS);
    REQUIRE(link.settle(limit));
    REQUIRE(link.told_.answers_.size() == 1);
    ObjectDescription object;
    REQUIRE(decode_body(link.told_.answers_[0].body, object));
    const auto forward = link.to_host_.sent_;
    const auto back = link.to_target_.sent_;
    REQUIRE(link.host_->pull(object, link.now_) == KERN_SUCCESS);
    REQUIRE(link.settle(limit));
    REQUIRE(link.told_.errors_.empty());
    REQUIRE(link.told_.objects_.size() == 1);
    REQUIRE(link.told_.objects_[0].bytes == capture);
    CHECK(link.commands_.stackshots_ == 1);
    CHECK(link.commands_.request_.flags == seed);
    const auto parts = [&](std::uint64_t sent) {
        return static_cast<double>(sent) / static_cast<double>(size);
    };
    return {parts(link.to_host_.sent_ - forward) - 1, parts(link.to_target_.sent_ - back)};
}

}  // namespace

TEST_CASE("every capture arrives as it was sent, over a line that damages up to 1 % of its bytes") {
    const std::uint64_t captures = captures_each();
    for (const double per_million : {0.0, 100.0, 1'000.0, 10'000.0}) {
        Overhead bytes_only;
        Overhead with_events;
        for (std::uint64_t seed = 1; seed <= captures; ++seed) {
            INFO(per_million << " bytes of a million, seed " << seed);
            // One of a length of its own, with everything that happens to reads and to the line;
            // one with damaged bytes alone, whose cost is told.
            link_model::Damage damage{.bytes_per_million = per_million};
            const Overhead plain = transfer(2 * seed, damage, 60'000);
            damage.reads_per_thousand = 2;
            damage.stalls_per_second = 0.1;
            damage.cuts_per_second = 0.1;
            damage.latency = seed % 5 * 4'000;
            const Overhead eventful = transfer(2 * seed + 1, damage, 5'000 + seed * 7919 % 95'000);
            bytes_only.forward += plain.forward;
            bytes_only.back += plain.back;
            with_events.forward += eventful.forward;
            with_events.back += eventful.back;
        }
        const double percent = 100 / static_cast<double>(captures);
        std::printf(
            "# %g %% of bytes damaged: the line carries %.1f %% more than the capture, and %.1f %% "
            "back; with stalls, cuts and late reads %.1f %% and %.1f %%\n",
            per_million / 1e4, percent * bytes_only.forward, percent * bytes_only.back,
            percent * with_events.forward, percent * with_events.back);
    }
}
