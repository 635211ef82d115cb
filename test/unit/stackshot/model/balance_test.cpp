#include "test/unit/stackshot/model/balance.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace model;

// Virtual time: the figures are the same on any machine.

TEST_CASE("no CPU gets a tenth more work than the mean, of many tasks or of one large one") {
    std::vector<std::size_t> tasks(100, 1);
    SECTION("many tasks") {
        tasks.assign(1000, 20);
    }
    SECTION("a large task at the front") {
        tasks.insert(tasks.begin(), 5000);
    }
    SECTION("a large task at the end") {
        tasks.push_back(5000);
    }
    const Balance balance = measure_balance(tasks, 8, 0);
    CHECK(balance.failure == "");
    CHECK(balance.largest <= 1.1);
    CHECK(balance.late <= 1.1);
}

TEST_CASE("P and E cores end within a tenth of each other") {
    std::vector<std::size_t> tasks(200, 3);
    tasks.push_back(2000);
    const Balance balance = measure_balance(tasks, 8, 4);
    CHECK(balance.failure == "");
    CHECK(balance.late <= 1.1);
}

TEST_CASE("one CPU has all the work") {
    const Balance balance = measure_balance({10, 20, 30}, 1, 0);
    CHECK(balance.failure == "");
    CHECK(balance.largest == 1);
}
