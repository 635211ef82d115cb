#pragma once

#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <limits>

namespace bench {

/// One line of standard output: what every program of this folder prints, and tools/bench passes
/// on.
inline void figure(const char* name, double value, const char* unit) {
    fmt::print("{}\t{:.1f}\t{}\n", name, value, unit);
    std::fflush(stdout);
}

/// Seconds of processor time that one call of `work` takes: the least of some, as what else the
/// machine does only ever adds.
template <typename Work>
double seconds(Work work) {
    const auto now = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    };
    constexpr int rounds = 7;
    double least = std::numeric_limits<double>::max();
    for (int round = 0; round < rounds; ++round) {
        const double begin = now();
        work();
        least = std::min(least, now() - begin);
    }
    return least;
}

/// Megabytes (10^6) a second, for `bytes` in each call of `work`.
template <typename Work>
double megabytes_per_second(std::size_t bytes, Work work) {
    return static_cast<double>(bytes) * 1e-6 / seconds(work);
}

}  // namespace bench
