#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernel/cpu.hpp"
#include "kernel/event.hpp"
#include "kernel/mutex.hpp"
#include "kernel/quiesce.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "test/unit/kernel/fake_machine.hpp"
#include "test/unit/kernel/host_panic.hpp"
#include "test/unit/kernel/kernel_threads.hpp"

// Behind the kernel's headers: the CHECK of this file is Catch's.
#include <catch2/catch_test_macros.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>

using namespace kernel;

namespace {

/// The machine is booted once: the kernel cannot be started twice in a process.
class Machine : public Catch::EventListenerBase {
  public:
    using EventListenerBase::EventListenerBase;
    void testRunStarting(const Catch::TestRunInfo&) override {
        const char* cpus = std::getenv("FAKE_CPUS");
        fake_machine::boot(cpus != nullptr ? static_cast<CpuIndex>(std::atoi(cpus)) : 4);
    }
    void testRunEnded(const Catch::TestRunStats&) override { fake_machine::power_off(); }
};
CATCH_REGISTER_LISTENER(Machine)

std::string panic_of(std::function<void()> body) {
    try {
        fake_machine::run(std::move(body));
    } catch (const Panicked& panicked) {
        return panicked.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a mutex has one owner at a time") {
    std::uint64_t counter = 0;  // plain: the mutex has to order it
    int inside = 0, most_inside = 0;
    fake_machine::run([&] {
        Mutex mutex;
        KernelThreads threads;
        for (int thread = 0; thread < 12; thread++)
            threads.start([&] {
                for (int turn = 0; turn < 300; turn++) {
                    MutexGuard guard(mutex);
                    most_inside = std::max(most_inside, ++inside);
                    const std::uint64_t value = counter;
                    if (turn % 16 == 0)
                        scheduler::yield();
                    fake_machine::poll();
                    counter = value + 1;
                    --inside;
                }
            });
        threads.join();
    });
    CHECK(counter == 12 * 300);
    CHECK(most_inside == 1);
}

TEST_CASE("a mutex is handed to the waiter of highest priority, then to the first that came") {
    std::vector<int> order;
    bool free_after = false;
    fake_machine::run([&] {
        Mutex mutex;
        mutex.lock();
        KernelThreads threads;
        const int priorities[] = {31, 40, 31, 50, 40, 31};
        for (int index = 0; index < 6; index++) {
            Thread& thread = threads.start(
                [&, index] {
                    MutexGuard guard(mutex);
                    order.push_back(index);
                },
                priorities[index]);
            await([&] { return waits_for(thread, &mutex); });
        }
        mutex.unlock();
        threads.join();
        free_after = mutex.try_lock();
        mutex.unlock();
    });
    CHECK(order == std::vector{3, 1, 4, 0, 2, 5});
    CHECK(free_after);
}

TEST_CASE("try_lock does not wait and does not take what is owned") {
    bool taken = true;
    fake_machine::run([&] {
        Mutex mutex;
        MutexGuard guard(mutex);
        KernelThreads threads;
        threads.start([&] { taken = mutex.try_lock(); });
        threads.join();
    });
    CHECK_FALSE(taken);
}

TEST_CASE("no wake-up is lost between two threads that signal each other") {
    constexpr int pairs = 6, turns = 500;
    std::atomic<int> finished{0};
    fake_machine::run([&] {
        struct Pair {
            Semaphore ping{}, pong{};
        };
        std::vector<std::unique_ptr<Pair>> all;
        KernelThreads threads;
        for (int index = 0; index < pairs; index++) {
            Pair& pair = *all.emplace_back(std::make_unique<Pair>());
            threads.start([&] {
                for (int turn = 0; turn < turns; turn++) {
                    pair.ping.signal();
                    pair.pong.wait();
                }
                finished++;
            });
            threads.start([&] {
                for (int turn = 0; turn < turns; turn++) {
                    pair.ping.wait();
                    pair.pong.signal();
                }
                finished++;
            });
        }
        threads.join();
    });
    CHECK(finished == 2 * pairs);
}

TEST_CASE("a semaphore gives out exactly what it was given, timeouts or not") {
    std::atomic<int> taken{0}, timed_out{0};
    int left = 0;
    constexpr int givers = 3, takers = 6, turns = 200;
    fake_machine::run([&] {
        Semaphore semaphore;
        {
            KernelThreads threads;
            for (int index = 0; index < takers; index++)
                threads.start([&, index] {
                    for (int turn = 0; turn < turns; turn++) {
                        const std::uint64_t deadline =
                            machine::absolute_time() + static_cast<std::uint64_t>(index) * 20'000;
                        if (semaphore.wait_until(deadline) == WaitResult::THREAD_AWAKENED)
                            taken++;
                        else
                            timed_out++;
                    }
                });
            for (int index = 0; index < givers; index++)
                threads.start([&] {
                    for (int turn = 0; turn < turns; turn++) {
                        semaphore.signal();
                        if (turn % 8 == 0)
                            sleep_microseconds(50);
                    }
                });
        }
        while (semaphore.wait_until(0) == WaitResult::THREAD_AWAKENED)
            left++;
    });
    CHECK(taken + left == givers * turns);
    CHECK(taken + timed_out == takers * turns);
}

TEST_CASE("a signal from an interrupt wakes the waiter") {
    constexpr int signals = 200;
    int woken = 0;
    Semaphore semaphore;
    KernelThreads* threads = nullptr;
    fake_machine::run([&] {
        threads = new KernelThreads;
        threads->start([&] {
            for (; woken < signals; woken++)
                semaphore.wait();
        });
    });
    for (int index = 0; index < signals; index++)
        fake_machine::raise(static_cast<CpuIndex>(index) % fake_machine::cpu_count(),
                            [&] { semaphore.signal(); });
    fake_machine::run([&] { delete threads; });
    CHECK(woken == signals);
}

TEST_CASE("an event lets everybody go on who waits, and everybody who comes until it is cleared") {
    std::atomic<int> through{0};
    WaitResult late = WaitResult::THREAD_TIMED_OUT, after_clear = WaitResult::THREAD_AWAKENED;
    fake_machine::run([&] {
        Event event;
        KernelThreads threads;
        for (int index = 0; index < 8; index++) {
            Thread& thread = threads.start([&] {
                event.wait();
                through++;
            });
            await([&] { return waits_for(thread, &event); });
        }
        event.set();
        threads.join();
        late = event.wait_until(0);
        event.clear();
        after_clear = event.wait_until(machine::absolute_time() + ms);
    });
    CHECK(through == 8);
    CHECK(late == WaitResult::THREAD_AWAKENED);
    CHECK(after_clear == WaitResult::THREAD_TIMED_OUT);
}

TEST_CASE("nobody sleeps too short, and the others run meanwhile") {
    std::atomic<int> early{0}, slept{0}, asleep{0}, most_asleep{0};
    fake_machine::run([&] {
        KernelThreads threads;
        for (std::uint64_t index = 0; index < 40; index++)
            threads.start([&, index] {
                const std::uint64_t deadline = machine::absolute_time() + (index * 7 % 40 + 1) * ms;
                const int now = ++asleep;
                for (int most = most_asleep; most < now;)
                    most_asleep.compare_exchange_weak(most, now);
                sleep_until(deadline);
                asleep--;
                if (machine::absolute_time() < deadline)
                    early++;
                slept++;
            });
        threads.join();
    });
    CHECK(early == 0);
    CHECK(slept == 40);
    CHECK(most_asleep > 1);
}

TEST_CASE("threads that sleep on one CPU wake in the order of their deadlines", "[one-cpu]") {
    std::vector<int> order;
    // The order says something only if all slept before the first deadline: on a busy host that
    // takes a later one.
    bool all_slept = false;
    for (std::uint64_t lead = 20 * ms; !all_slept; lead *= 2) {
        order.clear();
        all_slept = true;
        fake_machine::run([&] {
            const std::uint64_t start = machine::absolute_time() + lead;
            KernelThreads threads;
            const int places[] = {4, 1, 3, 0, 2};
            for (int place : places)
                threads.start([&, place] {
                    if (machine::absolute_time() + ms > start)
                        all_slept = false;
                    sleep_until(start + static_cast<std::uint64_t>(place) * ms);
                    order.push_back(place);
                });
        });
    }
    CHECK(order == std::vector{0, 1, 2, 3, 4});
}

TEST_CASE("threads of one priority share the CPUs") {
    const int count = static_cast<int>(fake_machine::cpu_count()) + 2;
    std::vector<std::atomic<std::uint64_t>> turns(static_cast<std::size_t>(count));
    std::atomic<bool> all_ran{false};
    fake_machine::run([&] {
        KernelThreads threads;
        for (auto& own : turns)
            threads.start([&] {
                // Never blocks: the others run only if it is preempted.
                while (!all_ran) {
                    own++;
                    fake_machine::poll();
                    all_ran = std::ranges::all_of(turns, [](auto& other) { return other > 0; });
                }
            });
    });
    CHECK(all_ran);
}

TEST_CASE("a thread of higher priority gets a CPU from one of lower priority at once") {
    std::atomic<bool> urgent_ran{false};
    std::atomic<int> computing{0};
    fake_machine::run([&] {
        KernelThreads threads;
        // More than there are CPUs, and none of them ends before the urgent thread has run.
        for (CpuIndex index = 0; index < fake_machine::cpu_count() + 1; index++)
            threads.start(
                [&] {
                    computing++;
                    while (!urgent_ran)
                        fake_machine::poll();
                },
                20);
        while (computing < static_cast<int>(fake_machine::cpu_count()) - 1)
            fake_machine::poll();
        threads.start([&] { urgent_ran = true; }, 90);
    });
    CHECK(urgent_ran);
}

TEST_CASE("a thread does not run while every CPU has one of higher priority") {
    std::atomic<bool> low_ran{false};
    bool ran_too_early = true;
    fake_machine::run([&] {
        std::atomic<bool> stop{false};
        std::atomic<CpuIndex> busy{0};
        KernelThreads threads;
        for (CpuIndex index = 0; index + 1 < fake_machine::cpu_count(); index++)
            threads.start(
                [&] {
                    busy++;
                    while (!stop)
                        fake_machine::poll();
                },
                60);
        while (busy + 1 < fake_machine::cpu_count())
            fake_machine::poll();
        // This thread, of priority 31, has the last CPU.
        threads.start([&] { low_ran = true; }, 10);
        compute(25 * ms);
        ran_too_early = low_ran;
        stop = true;
    });
    CHECK_FALSE(ran_too_early);
    CHECK(low_ran);
}

TEST_CASE("what a thread did is seen by who joins it, and its memory is given back") {
    std::size_t before = 0, during = 0, after = 0;
    std::atomic<int> done{0};
    fake_machine::run([&] {
        // Ended threads are taken apart later, in batches: those of earlier tests too.
        const std::size_t own = 2 + fake_machine::cpu_count();
        const auto settle = [&] {
            const std::uint64_t end = machine::absolute_time() + 5000 * ms;
            while (thread_count() > own && machine::absolute_time() < end)
                sleep_milliseconds(1);
            return thread_count();
        };
        before = settle();
        {
            KernelThreads threads;
            for (int round = 0; round < 20; round++)
                threads.create([&] { done++; }, 31);
            during = thread_count();
            threads.start_all();
        }
        after = settle();
    });
    CHECK(done == 20);
    CHECK(during == before + 20);
    CHECK(after == before);
}

TEST_CASE("a task lives as long as it is held or has threads, and keeps the time of dead threads") {
    std::size_t before = 0, during = 0, after = 0;
    std::uint64_t time_kept = 0, thread_time = 0;
    std::int32_t pid = 0;
    std::string task_name, thread_name;
    fake_machine::run([&] {
        before = task_count();
        Task& task = *task_create("a name that is longer than 31 characters").value();
        pid = task.pid;
        task_name = task.name;
        {
            KernelThreads threads(task);
            Thread& thread = threads.start([&] { compute(3 * ms); }, BASEPRI_DEFAULT,
                                           std::string(70, 'n').c_str());
            thread_name = thread.name;
            await([&] {
                sleep_milliseconds(1);
                SchedulerGuard guard;
                return task.threads.empty();
            });
            SchedulerGuard guard;
            time_kept = task.system_time_in_terminated_threads;
            thread_time = thread.system_time;
        }
        during = task_count();
        task_release(task);
        // The daemon that took the thread away may still hold the task for a moment.
        await([&] {
            sleep_milliseconds(1);
            return task_count() == before;
        });
        after = task_count();
    });
    CHECK(pid > 0);
    CHECK(task_name == "a name that is longer than 31 c");
    CHECK(thread_name == std::string(63, 'n'));
    CHECK(during == before + 1);
    CHECK(after == before);
    CHECK(thread_time >= 3 * ms);
    CHECK(time_kept == thread_time);
}

namespace {

/// In which list a task is: 't' terminated, 'a' among the others, 'n' in none.
char list_of(const Task& task) {
    SchedulerGuard guard;
    const auto contains = [&](const TaskList& list) {
        for (const Task* t = list.first(); t != nullptr; t = TaskList::next(*t))
            if (t == &task)
                return true;
        return false;
    };
    const bool terminated = contains(terminated_task_list());
    CHECK(!(terminated && contains(task_list())));
    return terminated ? 't' : contains(task_list()) ? 'a' : 'n';
}

}  // namespace

TEST_CASE("a task is torn down when it is released and its last thread has ended") {
    std::string lists;
    bool all_gone = false;
    fake_machine::run([&] {
        const std::size_t before = task_count();
        // An ended thread is taken apart some time after its end. What is in between is to be seen
        // here, unless the host was away for so long.
        for (int turn = 0; turn < 20 && lists != "aaat"; turn++) {
            lists.clear();
            Task& task = *task_create("short-lived").value();
            Semaphore first, second;
            KernelThreads one(task), other(task);
            one.start([&] { first.wait(); });
            other.start([&] { second.wait(); });
            lists += list_of(task);
            task_release(task);
            lists += list_of(task);
            first.signal();
            one.join();
            lists += list_of(task);
            second.signal();
            other.join();
            lists += list_of(task);
        }
        await([&] {
            sleep_milliseconds(1);
            return task_count() == before;
        });
        all_gone = terminated_task_list().empty();
    });
    CHECK(lists == "aaat");
    CHECK(all_gone);
}

TEST_CASE("a task that is terminated gets no thread, and those it has go on") {
    std::string lists;
    bool refused = false;
    std::atomic<bool> went_on{false};
    std::size_t before = 0;
    fake_machine::run([&] {
        before = task_count();
        Task& task = *task_create("wedged").value();
        Semaphore go;
        {
            KernelThreads threads(task);
            threads.start([&] {
                go.wait();
                went_on = true;
            });
            task_terminate(task);
            task_terminate(task);
            lists += list_of(task);
            refused = thread_create(
                          task, "late", [](void*) {}, nullptr)
                          .error() == kcdata::KERN_FAILURE;
            go.signal();
        }
        lists += list_of(task);
        task_release(task);
        await([&] {
            sleep_milliseconds(1);
            return task_count() == before;
        });
    });
    CHECK(lists == "tt");
    CHECK(refused);
    CHECK(went_on);
}

TEST_CASE("pids go up and unique pids are never used twice") {
    std::vector<std::int32_t> pids;
    std::vector<std::uint64_t> unique_pids;
    fake_machine::run([&] {
        for (int index = 0; index < 3; index++) {
            Task& task = *task_create("task").value();
            pids.push_back(task.pid);
            unique_pids.push_back(task.unique_pid);
            task_release(task);
        }
    });
    CHECK((pids[0] < pids[1] && pids[1] < pids[2]));
    CHECK((unique_pids[0] < unique_pids[1] && unique_pids[1] < unique_pids[2]));
}

TEST_CASE("a thread's state says what it does and what it waits for") {
    std::uint32_t created = 0, waiting = 0, in_mutex = 0, running = 0;
    CpuIndex never_ran = 0;
    std::uint64_t event_while_running = 1;
    fake_machine::run([&] {
        Semaphore semaphore;
        Mutex mutex;
        KernelThreads threads;
        Thread& thread = threads.create([&] {
            running = current_thread().state;
            event_while_running = current_thread().wait_event;
            semaphore.wait();
            mutex.lock();
            mutex.unlock();
        });
        created = thread.state;
        never_ran = thread.last_cpu;
        mutex.lock();
        thread_start(thread);
        await([&] { return waits_for(thread, &semaphore); });
        waiting = thread.state;
        semaphore.signal();
        await([&] { return waits_for(thread, &mutex); });
        in_mutex = thread.state;
        mutex.unlock();
    });
    CHECK(created == (SS_TH_WAIT | SS_TH_UNINT));
    CHECK(never_ran == no_cpu);
    CHECK(running == SS_TH_RUN);
    CHECK(event_while_running == 0);
    CHECK(waiting == SS_TH_WAIT);
    CHECK(in_mutex == (SS_TH_WAIT | SS_TH_UNINT));
}

TEST_CASE("time on a CPU is charged to the thread that had it") {
    std::uint64_t computed = 0, runnable = 0, elapsed = 0, charged = 0;
    fake_machine::run([&] {
        KernelThreads threads;
        // Of a priority that nobody preempts: it has a CPU as long as it computes.
        Thread& busy = threads.start(
            [] {
                for (int turn = 0; turn < 5; turn++) {
                    compute(2 * ms);
                    sleep_microseconds(10);
                }
            },
            90);
        await([&] {
            SchedulerGuard guard;
            return (busy.state & SS_TH_TERMINATE2) != 0;
        });
        computed = busy.system_time;
        runnable = busy.runnable_time;

        // All time of a CPU belongs to some thread.
        const auto charged_until = [](std::uint64_t now) {
            std::uint64_t sum = kernel_task().system_time_in_terminated_threads;
            for (const Thread* thread = kernel_task().threads.first(); thread != nullptr;
                 thread = ThreadList::next(*thread))
                sum += thread->system_time;
            for (CpuIndex cpu = 0; cpu < fake_machine::cpu_count(); cpu++)
                sum += now - cpu_at(cpu).dispatch_time;
            return sum;
        };
        std::uint64_t times[2], sums[2];
        for (int index = 0; index < 2; index++) {
            {
                SchedulerGuard guard;
                times[index] = machine::absolute_time();
                sums[index] = charged_until(times[index]);
            }
            sleep_milliseconds(5);
        }
        elapsed = (times[1] - times[0]) * fake_machine::cpu_count();
        charged = sums[1] - sums[0];
    });
    CHECK(computed >= 10 * ms);
    CHECK(runnable >= computed);
    CHECK(charged == elapsed);
}

TEST_CASE("waiting and waking leave the interrupt mask as it was") {
    bool after_wait = false, inside = true, between = true, after = false, in_thread = false;
    fake_machine::run([&] {
        Semaphore semaphore;
        KernelThreads threads;
        threads.start([&] {
            in_thread = machine::interrupts_enabled();
            semaphore.signal();
        });
        semaphore.wait();
        after_wait = machine::interrupts_enabled();
        {
            InterruptsOff outer;
            { InterruptsOff inner; }
            between = machine::interrupts_enabled();
            semaphore.signal();
            inside = machine::interrupts_enabled();
        }
        after = machine::interrupts_enabled();
    });
    CHECK(in_thread);
    CHECK(after_wait);
    CHECK_FALSE(between);
    CHECK_FALSE(inside);
    CHECK(after);
}

TEST_CASE("a spinlock excludes the other CPUs") {
    std::uint64_t counter = 0;
    fake_machine::run([&] {
        SpinLock lock;
        KernelThreads threads;
        for (int thread = 0; thread < 8; thread++)
            threads.start([&] {
                for (int turn = 0; turn < 1000; turn++) {
                    SpinLockGuard guard(lock);
                    counter = counter + 1;
                }
            });
    });
    CHECK(counter == 8 * 1000);
}

TEST_CASE("wrong use of a lock is caught") {
    CHECK(panic_of([] {
              SpinLock lock;
              lock.release();
          }).find("CHECK failed") != std::string::npos);
    CHECK(panic_of([] {
              SpinLock lock;
              lock.acquire();  // with interrupts on
          }).find("CHECK failed") != std::string::npos);
    CHECK(panic_of([] {
              SpinLock lock;
              InterruptsOff interrupts_off;
              lock.acquire();
              lock.acquire();
          }).find("CHECK failed") != std::string::npos);
    CHECK(panic_of([] {
              Mutex mutex;
              mutex.unlock();
          }).find("CHECK failed") != std::string::npos);
    CHECK(panic_of([] {
              Mutex mutex;
              MutexGuard guard(mutex);
              mutex.lock();
          }).find("CHECK failed") != std::string::npos);
    CHECK(panic_of([] {
              Semaphore semaphore;
              InterruptsOff interrupts_off;
              semaphore.wait();
          }).find("CHECK failed") != std::string::npos);
}

TEST_CASE("in a stop every thread is in one place, and nobody who is stopped loses a wake-up") {
    /// Looks at everything the scheduler knows, as a capture does: without its lock.
    struct Look final : stackshot::TrapBody {
        void cpu_preflight(CpuIndex) override {}
        void initiator(stackshot::Quiesced&) override {
            std::size_t on_cpu = 0, counted = 0;
            for (const Task* task = task_list().first(); task != nullptr;
                 task = TaskList::next(*task)) {
                std::uint32_t threads = 0;
                for (const Thread* thread = task->threads.first(); thread != nullptr;
                     thread = ThreadList::next(*thread), threads++) {
                    const bool current =
                        thread->last_cpu != no_cpu && cpu_at(thread->last_cpu).current == thread;
                    on_cpu += current;
                    const bool runs = (thread->state & SS_TH_RUN) != 0;
                    const bool waits = (thread->state & SS_TH_WAIT) != 0;
                    wrong += runs == waits || (current && !runs) || thread->task != task ||
                             (thread->wait_event != 0 && !waits);
                }
                wrong += threads != task->thread_count;
                counted += threads;
            }
            wrong += on_cpu != fake_machine::cpu_count();
            most_threads = std::max(most_threads, counted);
        }
        void auxiliary(stackshot::Quiesced&) override {}
        std::size_t wrong = 0, most_threads = 0;
    } look;
    CpuMask missed = 0;
    fake_machine::run([&] {
        quiesce().set_timeouts({60'000 * ms, 60'000 * ms});
        std::atomic<bool> stop{false};
        Semaphore forth, back;
        Mutex mutex;
        KernelThreads threads;
        threads.start([&] {
            while (!stop) {
                forth.signal();
                back.wait();
            }
            forth.signal();
        });
        threads.start([&] {
            while (!stop) {
                forth.wait();
                back.signal();
            }
            back.signal();
        });
        for (int index = 0; index < 6; index++)
            threads.start([&, index] {
                while (!stop) {
                    {
                        MutexGuard guard(mutex);
                        compute(5'000);
                    }
                    sleep_microseconds(static_cast<std::uint64_t>(index) * 30);
                    KernelThreads child;
                    child.start([] { scheduler::yield(); });
                }
            });
        const CpuMask all = machine::online_cpus();
        for (int turn = 0; turn < 100; turn++) {
            missed |= all & ~quiesce().stop(look, {}).stopped;
            sleep_microseconds(200);
        }
        stop = true;
    });
    CHECK(missed == 0);
    CHECK(look.wrong == 0);
    CHECK(look.most_threads > 8);
}

TEST_CASE("threads that come and go, block, sleep and are preempted all end") {
    std::atomic<int> ended{0};
    int started = 0;
    fake_machine::run([&] {
        Mutex mutex;
        Semaphore semaphore(2);
        Event go;
        for (int round = 0; round < 8; round++) {
            KernelThreads threads;
            for (int index = 0; index < 24; index++, started++)
                threads.start(
                    [&, index] {
                        go.wait();
                        for (int turn = 0; turn < 10; turn++) {
                            switch ((index + turn) % 5) {
                                case 0: {
                                    MutexGuard guard(mutex);
                                    fake_machine::poll();
                                    break;
                                }
                                case 1:
                                    semaphore.wait();
                                    scheduler::yield();
                                    semaphore.signal();
                                    break;
                                case 2:
                                    sleep_microseconds(static_cast<std::uint64_t>(index) * 10);
                                    break;
                                case 3:
                                    compute(20'000);
                                    break;
                                case 4: {
                                    KernelThreads child;
                                    child.start([&] { scheduler::yield(); }, 20 + turn);
                                    break;
                                }
                            }
                        }
                        ended++;
                    },
                    30 + index % 3);
            go.set();
            threads.join();
            go.clear();
        }
    });
    CHECK(ended == started);
}

TEST_CASE("without memory there is no thread and no task, and nothing is left behind") {
    fake_machine::run([] {
        const auto nothing = [](void*) {};
        const std::size_t tasks = task_count(), threads = thread_count();
        for (int allocation : {1, 2}) {  // the thread, its stack
            fake_machine::fail_allocation(allocation);
            auto thread = thread_create(kernel_task(), "none", nothing, nullptr);
            REQUIRE_FALSE(thread.ok());
            REQUIRE(thread.error() == kcdata::KERN_RESOURCE_SHORTAGE);
        }
        fake_machine::fail_allocation(1);
        REQUIRE(idle_thread_create(0, {}).error() == kcdata::KERN_RESOURCE_SHORTAGE);
        fake_machine::fail_allocation(1);
        REQUIRE(task_create("none").error() == kcdata::KERN_RESOURCE_SHORTAGE);
        REQUIRE(task_count() == tasks);
        // Threads of other tests may just be taken apart.
        REQUIRE(thread_count() <= threads);

        fake_machine::fail_allocation(2);
        REQUIRE_THROWS_AS(start_kernel_thread("none", nothing, nullptr), Panicked);
        auto thread = thread_create(kernel_task(), "some", nothing, nullptr, {.joinable = true});
        REQUIRE(thread.ok());
        thread_start(*thread.value());
        thread_join(*thread.value());
    });
}
