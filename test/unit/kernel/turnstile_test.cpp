#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "kernel/condition.hpp"
#include "kernel/ipc_port.hpp"
#include "kernel/mutex.hpp"
#include "kernel/rw_lock.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/sleep_with_inheritor.hpp"
#include "test/unit/kernel/fake_machine.hpp"
#include "test/unit/kernel/holder.hpp"
#include "test/unit/kernel/kernel_threads.hpp"

// Behind the kernel's headers: the CHECK of this file is Catch's.
#include <catch2/catch_test_macros.hpp>

using namespace kernel;

namespace {

/// What a thread is scheduled at, of its own and by inheritance.
struct Priorities {
    int base = 0, sched = 0, promotion = 0;
    bool operator==(const Priorities&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Priorities& p) {
    return out << "base " << p.base << " sched " << p.sched << " promotion " << p.promotion;
}
Priorities priorities(const Thread& thread) {
    SchedulerGuard guard;
    return {thread.base_pri, thread.sched_pri, thread.promotion_pri};
}

}  // namespace

TEST_CASE("the owner of a mutex runs at the priority of its first waiter until it gives it back") {
    std::vector<Priorities> seen;
    fake_machine::run([&] {
        Mutex mutex;
        Holder low(20), middle(40), high(60);
        const auto look = [&] { seen.push_back(priorities(low.thread())); };
        low.run([&] { mutex.lock(); });
        look();
        middle.begin([&] { MutexGuard guard(mutex); });
        await_waiting(middle.thread(), &mutex);
        look();
        high.begin([&] { MutexGuard guard(mutex); });
        await_waiting(high.thread(), &mutex);
        look();
        low.run([&] { mutex.unlock(); });
        look();
        high.finish();
        middle.finish();
        seen.push_back(priorities(high.thread()));
        seen.push_back(priorities(middle.thread()));
    });
    CHECK(seen ==
          std::vector<Priorities>{
              {20, 20, 0}, {20, 40, 40}, {20, 60, 60}, {20, 20, 0}, {60, 60, 0}, {40, 40, 0}});
}

TEST_CASE("who is handed a mutex inherits from those who still wait for it") {
    Priorities next, after;
    fake_machine::run([&] {
        Mutex mutex;
        Holder owner(20), first(50), second(45);
        owner.run([&] { mutex.lock(); });
        first.begin([&] { mutex.lock(); });
        await_waiting(first.thread(), &mutex);
        second.begin([&] { MutexGuard guard(mutex); });
        await_waiting(second.thread(), &mutex);
        owner.run([&] { mutex.unlock(); });
        first.finish();
        thread_set_base_priority(first.thread(), 30);
        next = priorities(first.thread());
        first.run([&] { mutex.unlock(); });
        after = priorities(first.thread());
        second.finish();
    });
    CHECK(next == Priorities{30, 45, 45});
    CHECK(after == Priorities{30, 30, 0});
}

TEST_CASE("a thread that holds two mutexes inherits from both, and keeps the one it keeps") {
    std::vector<int> seen;
    fake_machine::run([&] {
        Mutex one, other;
        Holder owner(10), high(70), middle(40);
        owner.run([&] {
            one.lock();
            other.lock();
        });
        middle.begin([&] { MutexGuard guard(one); });
        await_waiting(middle.thread(), &one);
        high.begin([&] { MutexGuard guard(other); });
        await_waiting(high.thread(), &other);
        seen.push_back(priorities(owner.thread()).sched);
        owner.run([&] { other.unlock(); });
        seen.push_back(priorities(owner.thread()).sched);
        owner.run([&] { one.unlock(); });
        seen.push_back(priorities(owner.thread()).sched);
        high.finish();
        middle.finish();
    });
    CHECK(seen == std::vector{70, 40, 10});
}

namespace {

/// Who waits for whom: a sleeper with an inheritor -> the owner of a mutex -> the writer of a
/// reader-writer lock -> the server of a port.
class Chain {
  public:
    Chain() {
        port = std::move(ReceiveRight::allocate(kernel_task()).value());
        server.begin([this] { received = port.receive(request); });
        await_waiting(server.thread(), port.port());
        writer.begin([this] {
            rw_lock.lock_exclusive();
            Message message{};
            result = port.make_send().request(message);
            rw_lock.unlock_exclusive();
        });
        server.finish();
        owner.begin([this] {
            mutex.lock();
            rw_lock.lock_shared();
            rw_lock.unlock_shared();
            mutex.unlock();
        });
        await_waiting(owner.thread(), &rw_lock);
        locker.begin([this] { MutexGuard guard(mutex); });
        await_waiting(locker.thread(), &mutex);
        sleeper.begin(
            [this] { woken = event.sleep(&locker.thread()) == WaitResult::THREAD_AWAKENED; });
        await_waiting(sleeper.thread(), &event);
    }
    /// Lets everything go, from the end on.
    void release() {
        server.run([this] { replied = reply(request, {}); });
        writer.finish();
        owner.finish();
        locker.finish();
    }
    std::vector<int> sched() {
        return {priorities(server.thread()).sched, priorities(writer.thread()).sched,
                priorities(owner.thread()).sched, priorities(locker.thread()).sched,
                priorities(sleeper.thread()).sched};
    }
    bool wait_for(std::vector<int> expected) {
        const std::uint64_t end = machine::absolute_time() + 10'000 * ms;
        while (sched() != expected && machine::absolute_time() < end)
            sleep_microseconds(100);
        return sched() == expected;
    }

    ReceiveRight port{};
    Message request{};
    RwLock rw_lock{};
    Mutex mutex{};
    SleepWithInheritor event{};
    bool woken = false;
    MachMsgReturn received{}, result{}, replied{};
    Holder server{5}, writer{10}, owner{15}, locker{12}, sleeper{20};
};

}  // namespace

TEST_CASE("a boost follows a chain of mixed kinds, also when it begins far down, and is dropped") {
    std::vector<std::vector<int>> seen;
    bool woken = false;
    MachMsgReturn result{};
    fake_machine::run([&] {
        Chain chain;
        const auto look = [&] { seen.push_back(chain.sched()); };
        look();
        // One more waiter in the middle.
        Holder urgent(90);
        urgent.begin([&] { MutexGuard guard(chain.mutex); });
        await_waiting(urgent.thread(), &chain.mutex);
        look();
        // The last waiter's own priority changes.
        thread_set_base_priority(chain.sleeper.thread(), 100);
        look();
        thread_set_base_priority(chain.sleeper.thread(), 20);
        look();
        chain.event.wakeup_all();
        chain.sleeper.finish();
        look();
        chain.release();
        urgent.finish();
        look();
        woken = chain.woken;
        result = chain.result;
    });
    CHECK(seen[0] == std::vector{20, 20, 20, 20, 20});
    CHECK(seen[1] == std::vector{90, 90, 90, 20, 20});
    CHECK(seen[2] == std::vector{100, 100, 100, 100, 100});
    CHECK(seen[3] == std::vector{90, 90, 90, 20, 20});
    CHECK(seen[4] == std::vector{90, 90, 90, 12, 20});
    CHECK(seen[5] == std::vector{5, 10, 15, 12, 20});
    CHECK(woken);
    CHECK(result == MachMsgReturn::MACH_MSG_SUCCESS);
}

TEST_CASE("a boost is dropped along the chain when the waiter times out") {
    bool boosted = false, dropped = false;
    fake_machine::run([&] {
        Chain chain;
        Holder urgent(90);
        WaitResult result{};
        urgent.begin([&] {
            result = chain.event.sleep(&chain.owner.thread(), machine::absolute_time() + 300 * ms);
        });
        boosted = chain.wait_for({90, 90, 90, 12, 20});
        urgent.finish();
        // The other sleeper still depends on whom the event was given to last.
        dropped = result == WaitResult::THREAD_TIMED_OUT && chain.wait_for({20, 20, 20, 12, 20});
        chain.event.wakeup_all();
        chain.sleeper.finish();
        chain.release();
    });
    CHECK(boosted);
    CHECK(dropped);
}

TEST_CASE("a boost moves with the inheritor of a sleep, and goes when the inheritor ends") {
    std::vector<int> first, second;
    bool woken = false;
    fake_machine::run([&] {
        SleepWithInheritor event;
        Holder one(20), other(21), sleeper(60);
        sleeper.begin([&] { woken = event.sleep(&one.thread()) == WaitResult::THREAD_AWAKENED; });
        await_waiting(sleeper.thread(), &event);
        const auto look = [&] {
            first.push_back(priorities(one.thread()).sched);
            second.push_back(priorities(other.thread()).sched);
        };
        look();
        event.change_inheritor(&other.thread());
        look();
        event.change_inheritor(nullptr);
        look();
        event.change_inheritor(&one.thread());
        one.end();
        event.change_inheritor(&other.thread());
        second.push_back(priorities(other.thread()).sched);
        event.wakeup_all();
        sleeper.finish();
        second.push_back(priorities(other.thread()).sched);
    });
    CHECK(first == std::vector{60, 20, 20});
    CHECK(second == std::vector{21, 60, 21, 60, 21});
    CHECK(woken);
}

TEST_CASE("who is woken from a sleep becomes the inheritor of the others") {
    std::vector<int> seen;
    bool nobody = true;
    std::atomic<int> woken{0};
    fake_machine::run([&] {
        SleepWithInheritor event;
        Holder owner(10), first(50), second(40);
        for (Holder* sleeper : {&first, &second}) {
            sleeper->begin(
                [&] { woken += event.sleep(&owner.thread()) == WaitResult::THREAD_AWAKENED; });
            await_waiting(sleeper->thread(), &event);
        }
        seen.push_back(priorities(owner.thread()).sched);
        event.wakeup_one();
        first.finish();
        thread_set_base_priority(first.thread(), 15);
        seen.push_back(priorities(owner.thread()).sched);
        seen.push_back(priorities(first.thread()).sched);
        event.wakeup_one();
        second.finish();
        seen.push_back(priorities(first.thread()).sched);
        nobody = event.wakeup_one();
    });
    CHECK(seen == std::vector{50, 10, 40, 15});
    CHECK_FALSE(nobody);
    CHECK(woken == 2);
}

TEST_CASE("a deadlock stops nothing but its own threads, and its priority is that of its highest") {
    constexpr int count = 200;  // more than the hops of one walk
    int woken = 0;
    std::vector<int> small;
    fake_machine::run([&] {
        // Each waits for the mutex of the next one. The last one closes the ring by a wait that can
        // be ended from outside.
        struct Ring {
            std::vector<std::unique_ptr<Mutex>> mutexes{};
            std::vector<std::unique_ptr<Holder>> holders{};
        };
        for (const int size : {3, count}) {
            Ring ring;
            SleepWithInheritor last;
            for (int index = 0; index < size; index++) {
                ring.mutexes.push_back(std::make_unique<Mutex>());
                ring.holders.push_back(std::make_unique<Holder>(20 + index % 10));
            }
            for (int index = 0; index < size; index++)
                ring.holders[static_cast<std::size_t>(index)]->run(
                    [&, index] { ring.mutexes[static_cast<std::size_t>(index)]->lock(); });
            for (int index = 0; index + 1 < size; index++) {
                Holder& holder = *ring.holders[static_cast<std::size_t>(index)];
                Mutex& next = *ring.mutexes[static_cast<std::size_t>(index + 1)];
                Mutex& own = *ring.mutexes[static_cast<std::size_t>(index)];
                holder.begin([&] {
                    next.lock();
                    next.unlock();
                    own.unlock();
                });
                await_waiting(holder.thread(), &next);
            }
            Holder& closing = *ring.holders[static_cast<std::size_t>(size - 1)];
            closing.begin([&] {
                woken += last.sleep(&ring.holders[0]->thread()) == WaitResult::THREAD_AWAKENED;
                ring.mutexes[static_cast<std::size_t>(size - 1)]->unlock();
            });
            await_waiting(closing.thread(), &last);
            Holder urgent(95);
            urgent.begin([&] { MutexGuard guard(*ring.mutexes[1]); });
            await_waiting(urgent.thread(), ring.mutexes[1].get());
            if (size == 3)
                for (auto& holder : ring.holders)
                    small.push_back(priorities(holder->thread()).sched);
            last.wakeup_all();
            closing.finish();
            for (int index = 0; index + 1 < size; index++)
                ring.holders[static_cast<std::size_t>(index)]->finish();
            urgent.finish();
            for (auto& holder : ring.holders) {
                const Priorities now = priorities(holder->thread());
                REQUIRE(now.sched == now.base);
            }
        }
    });
    CHECK(small == std::vector{95, 95, 95});
    CHECK(woken == 2);
}

TEST_CASE("a boosted thread gets the CPU from those of a priority in between") {
    std::atomic<bool> high_had_it{false};
    fake_machine::run([&] {
        std::atomic<bool> high_waits{false};
        Mutex mutex;
        // Before all others: it sets the scene.
        thread_set_base_priority(current_thread(), 90);
        Holder low(10), high(80);
        low.run([&] { mutex.lock(); });
        low.begin([&] {
            while (!high_waits)
                fake_machine::poll();
            mutex.unlock();
        });
        // They take every CPU, and end only when the high one has had the mutex.
        KernelThreads threads;
        for (CpuIndex cpu = 0; cpu < fake_machine::cpu_count(); cpu++)
            threads.start(
                [&] {
                    while (!high_had_it)
                        fake_machine::poll();
                },
                40);
        high.begin([&] {
            MutexGuard guard(mutex);
            high_had_it = true;
        });
        await_waiting(high.thread(), &mutex);
        high_waits = true;
        high.finish();
        low.finish();
    });
    CHECK(high_had_it);
}

TEST_CASE("a reader-writer lock is shared by readers and exclusive to a writer") {
    constexpr int count = 10;
    std::atomic<int> readers{0}, writers{0}, wrong{0}, met{0};
    std::uint64_t value = 0;  // plain: the lock has to order it
    int refused = 0, upgraded = 0;
    fake_machine::run([&] {
        RwLock lock;
        KernelThreads threads;
        const auto write = [&] {
            wrong += writers++ != 0 || readers != 0;
            const std::uint64_t before = value;
            fake_machine::poll();
            value = before + 1;
            writers--;
        };
        for (int thread = 0; thread < count; thread++)
            threads.start([&, thread] {
                // None goes on before all of them read at once.
                lock.lock_shared();
                readers++;
                for (met++; met < count;)
                    scheduler::yield();
                readers--;
                lock.unlock_shared();
                for (int turn = 0; turn < 150; turn++) {
                    if ((thread + turn) % 3 == 0) {
                        lock.lock_exclusive();
                        write();
                        if (turn % 2 == 0) {
                            lock.downgrade();
                            readers++;
                            wrong += writers != 0;
                            readers--;
                            lock.unlock_shared();
                        } else {
                            lock.unlock_exclusive();
                        }
                        continue;
                    }
                    lock.lock_shared();
                    readers++;
                    wrong += writers != 0;
                    if (turn % 4 == 0)
                        scheduler::yield();
                    readers--;
                    if (turn % 5 != 0) {
                        lock.unlock_shared();
                    } else if (lock.upgrade()) {
                        write();
                        upgraded++;
                        lock.unlock_exclusive();
                    } else {
                        lock.lock_exclusive();
                        write();
                        refused++;
                        lock.unlock_exclusive();
                    }
                }
            });
        threads.join();
        REQUIRE(lock.try_lock_exclusive());
        REQUIRE_FALSE(lock.try_lock_shared());
        REQUIRE_FALSE(lock.try_lock_exclusive());
        lock.unlock_exclusive();
        REQUIRE(lock.try_lock_shared());
        REQUIRE(lock.try_lock_shared());
        REQUIRE_FALSE(lock.try_lock_exclusive());
        lock.unlock_shared();
        lock.unlock_shared();
    });
    CHECK(wrong == 0);
    CHECK(upgraded > 0);
    // Of a thread's 150 turns one in three writes; of the readers every fifth turn.
    std::uint64_t writes = 0;
    for (int thread = 0; thread < count; thread++)
        for (int turn = 0; turn < 150; turn++)
            writes += (thread + turn) % 3 == 0 || turn % 5 == 0;
    CHECK(value == writes);
}

TEST_CASE("a reader-writer lock is granted by priority, then arrival; readers in a row share it") {
    std::string order;
    bool shared_ahead = false, shared_behind = true;
    fake_machine::run([&] {
        RwLock lock;
        KernelThreads threads;
        lock.lock_exclusive();
        struct Request {
            char name;
            bool shared;
            int priority;
        };
        // Writers are capital. At 31: a, b, then C, then d; E before all.
        Semaphore go_on;
        for (const Request& request :
             {Request{'a', true, 31}, Request{'b', true, 31}, Request{'C', false, 31},
              Request{'d', true, 31}, Request{'E', false, 40}}) {
            Thread& thread = threads.start(
                [&, request] {
                    request.shared ? lock.lock_shared() : lock.lock_exclusive();
                    {
                        SchedulerGuard guard;
                        order += request.name;
                    }
                    go_on.wait();
                    request.shared ? lock.unlock_shared() : lock.unlock_exclusive();
                },
                request.priority);
            await_waiting(thread, &lock);
        }
        const auto wait_for = [&](std::size_t count) {
            await([&] {
                SchedulerGuard guard;
                return order.size() >= count;
            });
        };
        const auto mark = [&] {
            SchedulerGuard guard;
            order += '|';
        };
        lock.unlock_exclusive();
        wait_for(1);
        mark();
        go_on.signal();  // E
        wait_for(4);     // a and b share it, C waits
        shared_behind = lock.try_lock_shared();
        thread_set_base_priority(current_thread(), 32);
        shared_ahead = lock.try_lock_shared();
        if (shared_ahead)
            lock.unlock_shared();
        thread_set_base_priority(current_thread(), BASEPRI_DEFAULT);
        mark();
        go_on.signal();
        go_on.signal();
        wait_for(6);
        mark();
        go_on.signal();
        wait_for(8);
        go_on.signal();
        threads.join();
    });
    // Which of the two readers runs first is open.
    if (order.substr(2, 2) == "ba")
        order.replace(2, 2, "ab");
    CHECK(order == "E|ab|C|d");
    CHECK_FALSE(shared_behind);
    CHECK(shared_ahead);
}

TEST_CASE("an upgrade waits for the other readers only, and a second one is refused") {
    bool first = false, second = true;
    Priorities owner;
    fake_machine::run([&] {
        RwLock lock;
        Holder one(31), other(31), writer(60);
        one.run([&] { lock.lock_shared(); });
        other.run([&] { lock.lock_shared(); });
        writer.begin([&] {
            lock.lock_exclusive();
            lock.unlock_exclusive();
        });
        await_waiting(writer.thread(), &lock);
        one.begin([&] { first = lock.upgrade(); });
        await_waiting(one.thread(), &lock);
        other.run([&] { second = lock.upgrade(); });
        one.finish();
        owner = priorities(one.thread());
        REQUIRE(lock.owner() == &one.thread());
        one.run([&] { lock.unlock_exclusive(); });
        writer.finish();
    });
    CHECK(first);
    CHECK_FALSE(second);
    CHECK(owner == Priorities{31, 60, 60});
}

TEST_CASE("a condition variable loses no signal that is sent under its mutex") {
    constexpr int items = 600, consumers = 4, producers = 3;
    std::atomic<int> taken{0};
    int timeouts = 0;
    fake_machine::run([&] {
        Mutex mutex;
        Condition not_empty, not_full;
        int queued = 0;
        bool over = false;
        KernelThreads threads, makers;
        for (int index = 0; index < consumers; index++)
            threads.start([&] {
                MutexGuard guard(mutex);
                for (;;) {
                    while (queued == 0 && !over)
                        not_empty.wait(mutex);
                    if (queued == 0)
                        return;
                    --queued;
                    taken++;
                    not_full.signal();
                }
            });
        for (int index = 0; index < producers; index++)
            makers.start([&] {
                for (int item = 0; item < items; item++) {
                    MutexGuard guard(mutex);
                    while (queued == 4)
                        not_full.wait(mutex);
                    ++queued;
                    not_empty.signal();
                }
            });
        makers.join();
        {
            MutexGuard guard(mutex);
            over = true;
            not_empty.broadcast();
        }
        threads.join();
        MutexGuard guard(mutex);
        Condition never;
        if (never.wait_until(mutex, machine::absolute_time() + ms) == WaitResult::THREAD_TIMED_OUT)
            timeouts++;
        REQUIRE(mutex.owner() == &current_thread());
    });
    CHECK(taken == items * producers);
    CHECK(timeouts == 1);
}
