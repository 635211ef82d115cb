#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "kernel/absolute_time.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/console.hpp"
#include "kernel/format_text.hpp"
#include "kernel/heap.hpp"
#include "kernel/machine.hpp"
#include "kernel/selftest/register_pattern.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/stackshot_system.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"

// Stops and resumes the world thousands of times under threads that would notice: some hold
// patterns in all their registers, some live from one wake-up to the next, some sleep.
namespace kernel::selftest {
namespace {

std::atomic<bool> enough{false};
std::atomic<std::uint32_t> finished{0};

/// One thread of the workload.
struct Worker {
    char name[32] = {};
    Verdict* verdict = nullptr;
    std::uint64_t seed = 0;
    Semaphore* wait_for = nullptr;
    Semaphore* signal = nullptr;
    std::atomic<std::uint64_t> rounds{0};
    std::uint64_t rounds_before = 0;
    Thread* thread = nullptr;
};

std::uint64_t next_random(std::uint64_t& state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

void fill(RegisterPattern& pattern, std::uint64_t& random) {
    for (auto& x : pattern.x)
        x = next_random(random);
    pattern.nzcv = next_random(random) & 0xf000'0000;
    for (auto& q : pattern.q)
        q = {next_random(random), next_random(random)};
    pattern.fpsr = next_random(random) & 0x0800'009f;  // QC and the cumulative exceptions
    pattern.fpcr = next_random(random) & 0x03c0'0000;  // DN, FZ, RMode
}

void compare(Worker& worker, const RegisterPattern& pattern, const RegisterPattern& found) {
    const auto check = [&worker](const char* kind, std::size_t n, std::uint64_t wanted,
                                 std::uint64_t got) {
        if (wanted != got)
            worker.verdict->fail("%s: %s%zu held %016lx, then %016lx", worker.name, kind, n, wanted,
                                 got);
    };
    for (std::size_t i = 0; i < pattern.x.size(); i++)
        check("x", i, pattern.x[i], found.x[i]);
    for (std::size_t i = 0; i < pattern.q.size(); i++) {
        check("low half of v", i, pattern.q[i].low, found.q[i].low);
        check("high half of v", i, pattern.q[i].high, found.q[i].high);
    }
    check("NZCV ", 0, pattern.nzcv, found.nzcv);
    check("FPSR ", 0, pattern.fpsr, found.fpsr);
    check("FPCR ", 0, pattern.fpcr, found.fpcr);
}

void hold_patterns(void* argument) {
    auto& worker = *static_cast<Worker*>(argument);
    std::uint64_t random = worker.seed;
    RegisterPattern pattern;
    RegisterPattern found;
    while (!enough.load(std::memory_order_relaxed)) {
        fill(pattern, random);
        if (const std::uint64_t moved = hold_register_pattern(pattern, found); moved != 0)
            worker.verdict->fail("%s: sp moved by %lu", worker.name, moved);
        compare(worker, pattern, found);
        worker.rounds.fetch_add(1, std::memory_order_relaxed);
    }
    finished.fetch_add(1, std::memory_order_relaxed);
}

void ping_pong(void* argument) {
    auto& worker = *static_cast<Worker*>(argument);
    while (!enough.load(std::memory_order_relaxed)) {
        worker.wait_for->wait();
        worker.rounds.fetch_add(1, std::memory_order_relaxed);
        worker.signal->signal();
    }
    // The other one waits for its last turn.
    worker.signal->signal();
    finished.fetch_add(1, std::memory_order_relaxed);
}

void sleep_often(void* argument) {
    auto& worker = *static_cast<Worker*>(argument);
    while (!enough.load(std::memory_order_relaxed)) {
        sleep_milliseconds(1);
        worker.rounds.fetch_add(1, std::memory_order_relaxed);
    }
    finished.fetch_add(1, std::memory_order_relaxed);
}

constexpr std::size_t max_workers = 6 * max_cpus + 2;
std::array<Worker*, max_workers> workers;
std::size_t worker_count = 0;

void add_worker(Verdict& verdict, const char* kind, ThreadEntry entry, int priority,
                Semaphore* wait_for = nullptr, Semaphore* signal = nullptr) {
    auto* const worker = heap::create<Worker>();
    if (worker == nullptr)
        return verdict.fail("no memory for a worker");
    format_to(worker->name, sizeof(worker->name), "%s %zu", kind, worker_count);
    worker->verdict = &verdict;
    worker->seed = 0x9e37'79b9'7f4a'7c15 * (worker_count + 1);
    worker->wait_for = wait_for;
    worker->signal = signal;
    auto thread = thread_create(kernel_task(), worker->name, entry, worker,
                                {.priority = priority, .joinable = true});
    if (!thread.ok())
        return verdict.fail("no thread for %s", worker->name);
    worker->thread = thread.value();
    workers[worker_count++] = worker;
    thread_start(*worker->thread);
}

void start_workers(Verdict& verdict, unsigned cpu_count) {
    for (unsigned i = 0; i < cpu_count; i++) {
        add_worker(verdict, "pattern", hold_patterns, BASEPRI_DEFAULT);
        add_worker(verdict, "pattern", hold_patterns, BASEPRI_DEFAULT);
        auto* const ping = heap::create<Semaphore>(1U);
        auto* const pong = heap::create<Semaphore>(0U);
        if (ping == nullptr || pong == nullptr)
            return verdict.fail("no memory for semaphores");
        // Of a pair one preempts the threads that hold patterns and the other takes turns with
        // them.
        add_worker(verdict, "ping", ping_pong, BASEPRI_FOREGROUND, ping, pong);
        add_worker(verdict, "pong", ping_pong, BASEPRI_DEFAULT, pong, ping);
    }
    add_worker(verdict, "sleeper", sleep_often, BASEPRI_FOREGROUND);
    add_worker(verdict, "sleeper", sleep_often, BASEPRI_FOREGROUND);
}

/// Counts who takes part, and looks whether the world stands still.
class Census final : public stackshot::TrapBody {
  public:
    void cpu_preflight(CpuIndex cpu) override { preflights_[cpu]++; }
    void auxiliary(stackshot::Quiesced& quiesced) override { auxiliaries_[quiesced.cpu()]++; }
    void initiator(stackshot::Quiesced& quiesced) override {
        initiator_ = quiesced.cpu();
        const std::uint64_t before = total_rounds();
        for (int i = 0; i < 10; i++)
            machine::wait_for_event();
        moved_ = total_rounds() != before;
    }

    /// After the stop.
    void check(Verdict& verdict, std::uint64_t cycle, const stackshot::TrapOutcome& outcome) const {
        if (outcome.absent != 0)
            verdict.fail("cycle %lu: CPUs %016lx did not answer", cycle, outcome.absent);
        if (outcome.stopped != machine::online_cpus())
            verdict.fail("cycle %lu: CPUs %016lx of %016lx stopped", cycle, outcome.stopped,
                         machine::online_cpus());
        if (moved_)
            verdict.fail("cycle %lu: a thread went on during the stop", cycle);
        for (CpuIndex cpu = 0; cpu < max_cpus; cpu++) {
            const bool online = (machine::online_cpus() & bit_of(cpu)) != 0;
            const unsigned auxiliary = online && cpu != initiator_ ? 1 : 0;
            if (preflights_[cpu] != (online ? 1U : 0U) || auxiliaries_[cpu] != auxiliary)
                verdict.fail("cycle %lu: cpu %u ran preflight %u and auxiliary %u times", cycle,
                             cpu, preflights_[cpu], auxiliaries_[cpu]);
        }
    }

  private:
    static std::uint64_t total_rounds() {
        std::uint64_t total = 0;
        for (std::size_t i = 0; i < worker_count; i++)
            total += workers[i]->rounds.load(std::memory_order_relaxed);
        return total;
    }

    std::array<unsigned, max_cpus> preflights_{};
    std::array<unsigned, max_cpus> auxiliaries_{};
    CpuIndex initiator_ = no_cpu;
    bool moved_ = false;
};

/// Waits until `done` is true; false after a minute.
template <typename Condition>
bool wait_until(Condition done) {
    const std::uint64_t deadline = machine::absolute_time() + 60 * machine::ticks_per_second();
    while (!done()) {
        if (machine::absolute_time() > deadline)
            return false;
        sleep_milliseconds(5);
    }
    return true;
}

/// Every worker still makes progress: none waits for a wake-up that was lost.
void check_progress(Verdict& verdict) {
    for (std::size_t i = 0; i < worker_count; i++)
        workers[i]->rounds_before = workers[i]->rounds.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < worker_count; i++) {
        const Worker& worker = *workers[i];
        if (!wait_until([&] {
                return worker.rounds.load(std::memory_order_relaxed) != worker.rounds_before;
            }))
            verdict.fail("%s made no more progress after %lu rounds", worker.name,
                         worker.rounds_before);
    }
}

}  // namespace

void quiesce_test(Verdict& verdict) {
    const std::uint64_t cycles = boot_arguments().number("cycles", 1000, 1);
    const auto cpu_count = static_cast<unsigned>(std::popcount(machine::online_cpus()));
    start_workers(verdict, cpu_count);

    std::uint64_t random = 1;
    std::uint64_t total = 0;
    std::uint64_t longest = 0;
    for (std::uint64_t cycle = 0; cycle < cycles && !verdict.failed(); cycle++) {
        Census census;
        const auto outcome = stackshot_system().trap(census);
        census.check(verdict, cycle, outcome);
        total += outcome.interrupts_off;
        longest = std::max(longest, outcome.interrupts_off);
        // In between the world runs for a while, or hardly at all.
        if (const std::uint64_t pause = next_random(random) % 4; pause != 0)
            sleep_microseconds(pause * 300);
    }
    if (!verdict.failed())
        check_progress(verdict);

    enough.store(true, std::memory_order_relaxed);
    if (!wait_until([] { return finished.load(std::memory_order_relaxed) == worker_count; }))
        return verdict.fail("%zu threads did not end",
                            worker_count - finished.load(std::memory_order_relaxed));
    std::uint64_t rounds = 0;
    for (std::size_t i = 0; i < worker_count; i++) {
        thread_join(*workers[i]->thread);
        rounds += workers[i]->rounds.load(std::memory_order_relaxed);
    }
    console::print(
        "quiesce: %lu cycles on %u CPUs, %zu threads made %lu rounds; stopped %lu us on "
        "average, %lu us at most\n",
        cycles, cpu_count, worker_count, rounds, absolute_time_to_microseconds(total / cycles),
        absolute_time_to_microseconds(longest));
}

}  // namespace kernel::selftest
