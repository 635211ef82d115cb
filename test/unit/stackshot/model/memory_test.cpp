#include "test/unit/stackshot/model/memory.hpp"

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <set>
#include <utility>

using namespace model;

// The litmus tests of the C++ memory model: what it allows is found, what it forbids never.

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto seq_cst = std::memory_order_seq_cst;

/// Runs `bodies` as CPUs, a thousand schedules of what `prepare` makes anew for each. The failures.
std::set<std::string> explore(const std::function<std::vector<std::function<void()>>()>& prepare) {
    std::set<std::string> failures;
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        const auto bodies = prepare();
        Scheduler scheduler(seed, static_cast<unsigned>(bodies.size()));
        const std::string failure = scheduler.run([&](unsigned cpu) { bodies[cpu](); });
        if (failure != "")
            failures.insert(failure);
    }
    return failures;
}

/// What two CPUs read in store buffering: x = 1, read y against y = 1, read x.
std::set<std::pair<int, int>> store_buffering(std::memory_order order) {
    std::set<std::pair<int, int>> seen;
    Atomic<int> x{0}, y{0};
    int a = -1, b = -1;
    const auto failures = explore([&]() -> std::vector<std::function<void()>> {
        if (a >= 0)
            seen.emplace(a, b);
        x.store(0);
        y.store(0);
        return {[&] {
                    x.store(1, order == acquire ? release : order);
                    a = y.load(order);
                },
                [&] {
                    y.store(1, order == acquire ? release : order);
                    b = x.load(order);
                }};
    });
    CHECK(failures.empty());
    return seen;
}

/// The failures of handing on plain data by a flag.
std::set<std::string> message_passing(std::memory_order stores, std::memory_order loads) {
    Atomic<int> flag{0};
    Published<int> data = 0;
    return explore([&]() -> std::vector<std::function<void()>> {
        flag.store(0);
        data = 0;
        return {[&] {
                    data = 42;
                    flag.store(1, stores);
                },
                [&] {
                    if (flag.load(loads) == 1 && data != 42)
                        Scheduler::active()->fail("old data");
                }};
    });
}

}  // namespace

TEST_CASE("both CPUs may miss the other's store, unless all is sequentially consistent") {
    CHECK(store_buffering(relaxed).contains({0, 0}));
    CHECK(store_buffering(acquire).contains({0, 0}));
    const auto ordered = store_buffering(seq_cst);
    CHECK(ordered == std::set<std::pair<int, int>>{{0, 1}, {1, 0}, {1, 1}});
}

TEST_CASE("data is handed on by a release and an acquire, not by less") {
    CHECK(message_passing(release, acquire).empty());
    CHECK(message_passing(seq_cst, seq_cst).empty());
    CHECK(message_passing(relaxed, acquire).size() == 1);
    CHECK(message_passing(release, relaxed).size() == 1);
}

TEST_CASE("a read-modify-write in between keeps a release sequence going") {
    Atomic<int> flag{0};
    Published<int> data = 0;
    const auto failures = explore([&]() -> std::vector<std::function<void()>> {
        flag.store(0);
        data = 0;
        return {[&] {
                    data = 42;
                    flag.store(1, release);
                },
                [&] { (void)flag.fetch_or(2, relaxed); },
                [&] {
                    if (flag.load(acquire) == 3)
                        (void)static_cast<int>(data);
                }};
    });
    // Where fetch_or came first, 3 is not read: the store overwrote it.
    CHECK(failures.empty());
}

TEST_CASE("what a CPU has read once, it does not unread") {
    Atomic<int> x{0};
    bool stale = false;
    const auto failures = explore([&]() -> std::vector<std::function<void()>> {
        x.store(0);
        return {[&] {
                    for (int n = 1; n <= 5; ++n)
                        x.store(n, relaxed);
                },
                [&] {
                    int before = 0;
                    for (int n = 0; n < 10; ++n) {
                        const int now = x.load(relaxed);
                        if (now < before)
                            Scheduler::active()->fail("back in time");
                        before = now;
                    }
                    stale = stale || before < 5;
                }};
    });
    CHECK(failures.empty());
    CHECK(stale);
}

TEST_CASE("read-modify-writes lose nothing") {
    Atomic<unsigned> x{0};
    const auto add = [&] {
        for (int n = 0; n < 5; ++n) {
            unsigned seen = x.load(relaxed);
            while (!x.compare_exchange_weak(seen, seen + 1, relaxed, relaxed)) {
            }
        }
    };
    unsigned least = 15;
    const auto failures = explore([&]() -> std::vector<std::function<void()>> {
        if (x.load() != 0)
            least = std::min(least, x.load());
        x.store(0);
        return {add, add, add};
    });
    CHECK(failures.empty());
    CHECK(least == 15);
}

TEST_CASE("a signal makes what the signaller stored visible, and orders nothing") {
    Atomic<int> flag{0};
    Published<int> data = 0;
    const auto failures = explore([&]() -> std::vector<std::function<void()>> {
        flag.store(0);
        data = 0;
        return {[&] {
                    data = 42;
                    flag.store(1, relaxed);
                    Scheduler::active()->signal();
                },
                [&] {
                    Scheduler::active()->wait();
                    if (flag.load(relaxed) != 1)
                        Scheduler::active()->fail("not visible");
                    (void)static_cast<int>(data);
                }};
    });
    REQUIRE(failures.size() == 1);
    CHECK(failures.begin()->find("data race") != std::string::npos);
}

TEST_CASE("CPUs that all wait are a hang") {
    const auto failures = explore([&]() -> std::vector<std::function<void()>> {
        return {[] { Scheduler::active()->wait(); }, [] { Scheduler::active()->wait(); }};
    });
    CHECK(failures == std::set<std::string>{"all CPUs wait: a signal was missed"});
}
