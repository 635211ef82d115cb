#include <algorithm>
#include <array>

#include "kernel/mutex.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/daemons.hpp"

namespace kernel::workload {
namespace {

constexpr std::int64_t opening_balance = 1000;

struct Account {
    Mutex mutex{};
    std::int64_t balance = opening_balance;
};
constinit std::array<Account, 6> accounts;

void post(Account& from, Account& to, std::int64_t amount) {
    from.balance -= amount;
    compute(100, static_cast<std::uint64_t>(amount));
    to.balance += amount;
}

[[gnu::noinline]] void transfer(std::size_t from, std::size_t to, std::int64_t amount) {
    // The lower account first: nobody waits in a circle.
    MutexGuard first(accounts[std::min(from, to)].mutex);
    MutexGuard second(accounts[std::max(from, to)].mutex);
    post(accounts[from], accounts[to], amount);
}

void ledger_teller(void* argument) {
    Random random(reinterpret_cast<std::uint64_t>(argument));
    for (;;) {
        const std::size_t from = random.below(accounts.size());
        const std::size_t to = (from + 1 + random.below(accounts.size() - 1)) % accounts.size();
        transfer(from, to, static_cast<std::int64_t>(random.below(100)));
        sleep_microseconds(500 + random.below(4000));
    }
}

/// The sum of all accounts from `index` on, none of which changes meanwhile.
[[gnu::noinline]] std::int64_t sum_accounts_from(std::size_t index) {
    if (index == accounts.size()) {
        sleep_milliseconds(2);
        return 0;
    }
    MutexGuard guard(accounts[index].mutex);
    return accounts[index].balance + sum_accounts_from(index + 1);
}

void ledger_auditor(void*) {
    for (;;) {
        const std::int64_t sum = sum_accounts_from(0);
        CHECK(sum == opening_balance * static_cast<std::int64_t>(accounts.size()));
        sleep_milliseconds(20);
    }
}

}  // namespace

void start_ledgerd(std::uint32_t threads) {
    Task& task = make_task("ledgerd");
    for (std::uintptr_t index = 0; index < threads; index++)
        make_thread(task, ledger_teller, reinterpret_cast<void*>(index), {.priority = 37},
                    "ledger.teller.%zu", index);
    make_thread(task, ledger_auditor, nullptr, {.priority = 38}, "ledger.auditor");
    task_release(task);
}

}  // namespace kernel::workload
