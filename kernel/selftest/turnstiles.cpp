#include <array>
#include <atomic>
#include <bit>

#include "kernel/absolute_time.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/condition.hpp"
#include "kernel/console.hpp"
#include "kernel/ipc_port.hpp"
#include "kernel/mutex.hpp"
#include "kernel/rw_lock.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/sleep_with_inheritor.hpp"
#include "kernel/workload/workload.hpp"

namespace kernel::selftest {
namespace {

using workload::Random;

constexpr std::size_t workers = 24, servers = 2;

constinit Mutex outer, inner;
constinit RwLock rw_lock;
constinit Condition changed;
constinit Semaphore semaphore(2), done;
constinit SleepWithInheritor event;
ReceiveRight* port = nullptr;
constinit std::array<Thread*, workers> threads;
constinit std::uint64_t guarded = 0;  ///< by `inner`
constinit std::atomic<std::uint64_t> additions{0}, rounds{0}, requests{0}, wrong{0};
constinit std::atomic<bool> over{false}, leave{false};

void add_one() {
    MutexGuard guard(inner);
    const std::uint64_t value = guarded;
    workload::compute(2, value);
    guarded = value + 1;
    additions.fetch_add(1, std::memory_order_relaxed);
}

void blame(bool what) {
    if (what)
        wrong.fetch_add(1, std::memory_order_relaxed);
}

void server(void*) {
    for (;;) {
        Message request;
        if (port->receive(request) != MachMsgReturn::MACH_MSG_SUCCESS)
            return;
        add_one();
        // The client may have given up; what is sent then goes nowhere.
        const MachMsgReturn result =
            reply(request, {.id = 1, .body = {request.body[0] + 1}, .reply = {}});
        blame(result == MachMsgReturn::MACH_SEND_TIMED_OUT);
    }
}

void ask(const SendRight& right, Random& random, std::uint64_t deadline) {
    const std::uint64_t question = random.below(1000);
    Message message{.id = 1, .body = {question}, .reply = {}};
    const MachMsgReturn result = right.request(message, deadline);
    if (result == MachMsgReturn::MACH_MSG_SUCCESS)
        blame(message.body[0] != question + 1);
    else
        blame(deadline == no_deadline);
    requests.fetch_add(1, std::memory_order_relaxed);
}

void read_or_write(Random& random) {
    if (random.below(2) == 0) {
        rw_lock.lock_exclusive();
        rw_lock.downgrade();
    } else {
        rw_lock.lock_shared();
    }
    if (random.below(4) == 0)
        sleep_microseconds(random.below(200));
    if (rw_lock.upgrade()) {
        add_one();
        rw_lock.unlock_exclusive();
    }
}

void one_round(std::size_t self, const SendRight& right, Random& random) {
    const std::uint64_t soon =
        machine::absolute_time() + nanoseconds_to_absolute_time(random.below(2'000'000));
    switch (random.below(8)) {
        case 0: {
            MutexGuard guard(outer);
            add_one();
            break;
        }
        case 1:
            ask(right, random, no_deadline);
            break;
        case 2:
            ask(right, random, soon);
            break;
        case 3:
            read_or_write(random);
            break;
        case 4: {
            MutexGuard guard(outer);
            // Woken or not, it owns the mutex again.
            if (changed.wait_until(outer, soon) == WaitResult::THREAD_AWAKENED)
                add_one();
            blame(outer.owner() != &current_thread());
            break;
        }
        case 5:
            changed.broadcast();
            event.wakeup_one();
            break;
        case 6:
            blame(event.sleep(threads[(self + 1) % workers], soon) ==
                      WaitResult::THREAD_TIMED_OUT &&
                  machine::absolute_time() < soon);
            break;
        case 7:
            semaphore.wait();
            thread_set_base_priority(current_thread(), 20 + static_cast<int>(random.below(30)));
            semaphore.signal();
            break;
    }
}

void worker(void* argument) {
    const auto self = reinterpret_cast<std::size_t>(argument);
    {
        const SendRight right = port->make_send();
        Random random(self + 1);
        while (!over.load(std::memory_order_relaxed)) {
            one_round(self, right, random);
            rounds.fetch_add(1, std::memory_order_relaxed);
        }
    }
    done.signal();
    // They are each other's inheritors: all stay until all are done.
    while (!leave.load(std::memory_order_relaxed))
        sleep_milliseconds(10);
}

}  // namespace

/// For seconds=N (5) threads do whatever waits, at random, with priorities that change. Nobody may
/// be left waiting, what locks guard adds up, and afterwards nobody is boosted.
void turnstiles_test(Verdict& verdict) {
    const std::uint64_t seconds = boot_arguments().number("seconds", 5, 1, 24 * 3600);
    auto allocated = ReceiveRight::allocate(kernel_task(), 3);
    if (!allocated.ok())
        return verdict.fail("no memory for a port");
    ReceiveRight right = std::move(allocated.value());
    port = &right;
    std::array<Thread*, servers> serving{};
    for (Thread*& thread : serving)
        thread = &workload::make_thread(kernel_task(), server, nullptr,
                                        {.priority = 12, .joinable = true}, "server");
    for (std::size_t index = 0; index < workers; index++) {
        auto created =
            thread_create(kernel_task(), "worker", worker, reinterpret_cast<void*>(index),
                          {.priority = 20, .joinable = true});
        if (!created.ok())
            return verdict.fail("no memory for a thread");
        threads[index] = created.value();
    }
    for (Thread* thread : threads)
        thread_start(*thread);
    sleep_milliseconds(seconds * 1000);
    over.store(true, std::memory_order_relaxed);
    const std::uint64_t patience =
        machine::absolute_time() + 60 * milliseconds_to_absolute_time(1000);
    for (std::size_t index = 0; index < workers; index++)
        if (done.wait_until(patience) == WaitResult::THREAD_TIMED_OUT)
            return verdict.fail("%zu of %zu threads are stuck", workers - index, workers);
    for (Thread* thread : threads) {
        SchedulerGuard guard;
        if (thread->sched_pri != thread->base_pri || thread->lock_count != 0)
            verdict.fail("thread %lu is scheduled at %d, not at %d, and holds %u locks",
                         thread->thread_id, int{thread->sched_pri}, int{thread->base_pri},
                         thread->lock_count);
    }
    leave.store(true, std::memory_order_relaxed);
    for (Thread* thread : threads)
        thread_join(*thread);
    right = {};
    for (Thread* thread : serving)
        thread_join(*thread);
    if (wrong != 0)
        verdict.fail("%lu results were wrong", wrong.load());
    if (guarded != additions)
        verdict.fail("%lu additions came to %lu", additions.load(), guarded);
    console::print("turnstiles: %lu rounds, %lu requests, %lu additions in %lu s\n", rounds.load(),
                   requests.load(), guarded, seconds);
}

}  // namespace kernel::selftest
