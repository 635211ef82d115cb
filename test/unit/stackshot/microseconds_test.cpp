#include "stackshot/microseconds.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <random>

using namespace stackshot;

namespace {

__extension__ using uint128 = unsigned __int128;

/// By the definition of a timebase, in 128 bits and with a division.
std::uint64_t expected(std::uint64_t time, const Timebase& timebase) {
    return static_cast<std::uint64_t>(uint128{time} * timebase.numer /
                                      (uint128{timebase.denom} * 1000));
}

}  // namespace

TEST_CASE("absolute time in microseconds is what a 128-bit division makes of it") {
    const Timebase timebase =
        GENERATE(Timebase{1, 1},            // 1 GHz
                 Timebase{16, 1},           // 62.5 MHz
                 Timebase{500, 27},         // 54 MHz
                 Timebase{125, 3},          // 24 MHz
                 Timebase{1'000, 1},        // 1 MHz
                 Timebase{31'250, 1},       // 32 kHz: ticks longer than a microsecond
                 Timebase{500'000'000, 1},  // 2 Hz
                 Timebase{1, 4'000'000'000}, Timebase{UINT32_MAX, UINT32_MAX - 1},
                 Timebase{UINT32_MAX - 4, UINT32_MAX}, Timebase{7, 1'048'576});
    const Microseconds microseconds(timebase);
    INFO(timebase.numer << "/" << timebase.denom);
    const auto check = [&](std::uint64_t time) {
        if (microseconds(time) != expected(time, timebase)) {
            INFO("time " << time);
            CHECK(microseconds(time) == expected(time, timebase));
        }
    };
    // Around every multiple of a microsecond of some, where rounding decides.
    const std::uint64_t b = std::uint64_t{timebase.denom} * 1000;
    for (const std::uint64_t around :
         {std::uint64_t{0}, b, 2 * b, 999 * b, std::uint64_t{1} << 32, std::uint64_t{1} << 62,
          UINT64_MAX / b * b, UINT64_MAX, microseconds.multiplied_to()}) {
        for (std::uint64_t n = 0; n < 2000; ++n)
            check(around - 1000 + n);
    }
    std::mt19937_64 random(20240611);
    for (int n = 0; n < 200'000; ++n) {
        const std::uint64_t time = random() >> random() % 64;
        check(time);
        // The last tick before a whole microsecond, and the first one of it.
        const std::uint64_t whole = expected(time, timebase);
        const auto first =
            static_cast<std::uint64_t>((uint128{whole} * b + timebase.numer - 1) / timebase.numer);
        check(first);
        check(first - 1);
    }
    CHECK(microseconds(0) == 0);
}

TEST_CASE("the times of centuries are converted without a division") {
    constexpr std::uint64_t seconds = 250ULL * 365 * 86'400;
    CHECK(Microseconds({1, 1}).multiplied_to() > 1'000'000'000 * seconds);
    CHECK(Microseconds({16, 1}).multiplied_to() > 62'500'000 * seconds);
    CHECK(Microseconds({500, 27}).multiplied_to() > 54'000'000 * seconds);
}
