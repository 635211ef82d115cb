#include "kernel/thread_wait_info.hpp"

#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "kernel/ipc_port.hpp"
#include "kernel/mutex.hpp"
#include "kernel/port_label.hpp"
#include "kernel/rw_lock.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep_with_inheritor.hpp"
#include "test/unit/kernel/holder.hpp"

// Behind the kernel's headers: the CHECK of this file is Catch's.
#include <catch2/catch_test_macros.hpp>

using namespace kernel;
using namespace kcdata;

namespace {

std::uint64_t address_of(const void* object) {
    return reinterpret_cast<std::uint64_t>(object);
}

/// As a reader in a stop sees it.
stackshot::WaitFacts wait_info(const Thread& thread, WaitInfoRead* end = nullptr) {
    SchedulerGuard guard;
    stackshot::WaitFacts info;
    const WaitInfoRead result = read_thread_wait_info(
        [](std::uint64_t address, void* to) {
            std::memcpy(to, reinterpret_cast<const void*>(address), 16);
            return true;
        },
        World::stands, address_of(&thread), blocked_thread(thread), info);
    if (end != nullptr)
        *end = result;
    return info;
}

}  // namespace

TEST_CASE("a blocked thread tells its kind of wait, its object and whom it waits for") {
    struct Expected {
        stackshot::WaitFacts info;
        std::uint8_t type;
        std::uint64_t owner, context, inheritor, flags;
        std::uint32_t wait_flags = 0;
        int priority = 0;
    };
    std::vector<Expected> all;
    fake_machine::run([&] {
        Task& task = *task_create("owner").value();
        const auto pid = static_cast<std::uint64_t>(task.pid);
        Mutex mutex;
        RwLock rw_lock;
        Semaphore semaphore(0, task.pid);
        SleepWithInheritor event;
        const auto port = std::move(ReceiveRight::allocate(task, 1).value());
        Holder owner(20), waiter(40), server(10);
        const std::uint64_t id = owner.thread().thread_id;
        const auto blocked = [&](std::function<void()> wait, std::function<void()> release,
                                 std::uint8_t type, std::uint64_t owner_value,
                                 std::uint64_t context, std::uint64_t inheritor,
                                 std::uint64_t flags, std::uint32_t wait_flags = 0) {
            waiter.begin(std::move(wait));
            await([&] {
                SchedulerGuard guard;
                return waiter.thread().block_hint == type;
            });
            const stackshot::WaitFacts info = wait_info(waiter.thread());
            // The special reply port is nobody's to name.
            if (wait_flags != 0)
                context = info.context;
            all.push_back({info, type, owner_value, context, inheritor, flags, wait_flags, 40});
            release();
            waiter.finish();
        };
        WaitResult woken{};
        owner.run([&] { mutex.lock(); });
        blocked([&] { MutexGuard guard(mutex); }, [&] { owner.run([&] { mutex.unlock(); }); },
                kThreadWaitKernelMutex, id, address_of(&mutex), id,
                STACKSHOT_TURNSTILE_STATUS_THREAD);
        owner.run([&] { rw_lock.lock_exclusive(); });
        blocked(
            [&] {
                rw_lock.lock_shared();
                rw_lock.unlock_shared();
            },
            [&] { owner.run([&] { rw_lock.unlock_exclusive(); }); }, kThreadWaitKernelRWLockRead,
            id, address_of(&rw_lock), id, STACKSHOT_TURNSTILE_STATUS_THREAD);
        owner.run([&] { rw_lock.lock_shared(); });
        blocked(
            [&] {
                rw_lock.lock_exclusive();
                rw_lock.unlock_exclusive();
            },
            [&] { owner.run([&] { rw_lock.unlock_shared(); }); }, kThreadWaitKernelRWLockWrite, 0,
            address_of(&rw_lock), 0, STACKSHOT_TURNSTILE_STATUS_UNKNOWN);
        blocked([&] { semaphore.wait(); }, [&] { semaphore.signal(); }, kThreadWaitSemaphore, pid,
                address_of(&semaphore), 0, STACKSHOT_TURNSTILE_STATUS_UNKNOWN);
        blocked([&] { woken = event.sleep(&owner.thread()); }, [&] { event.wakeup_all(); },
                kThreadWaitSleepWithInheritor, id, 0, id, STACKSHOT_TURNSTILE_STATUS_THREAD);
        Message message;
        blocked([&] { std::ignore = port.receive(message); },
                [&] { std::ignore = port.make_send().send({}); }, kThreadWaitPortReceive, 0,
                address_of(port.port()), 0, STACKSHOT_TURNSTILE_STATUS_UNKNOWN);
        // Nobody but the waiter itself has served the port: its own requests are the task's.
        const auto other = std::move(ReceiveRight::allocate(task, 1).value());
        std::ignore = other.make_send().send({});
        blocked([&] { std::ignore = other.make_send().send({}); },
                [&] { std::ignore = other.receive(message); }, kThreadWaitPortSend, pid,
                address_of(other.port()), pid, STACKSHOT_TURNSTILE_STATUS_BLOCKED_ON_TASK);
        const auto third = std::move(ReceiveRight::allocate(task, 1).value());
        Message request;
        const auto ask = [&] {
            Message question;
            std::ignore = third.make_send().request(question);
        };
        const auto answer = [&] {
            server.run([&] { std::ignore = third.receive(request); });
            server.run([&] { std::ignore = reply(request, {}); });
        };
        blocked(ask, answer, kThreadWaitPortReceive, 0, 0, pid,
                STACKSHOT_TURNSTILE_STATUS_BLOCKED_ON_TASK, STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY);
        // Now it is known who serves.
        blocked(ask, answer, kThreadWaitPortReceive, 0, 0, server.thread().thread_id,
                STACKSHOT_TURNSTILE_STATUS_THREAD, STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY);
        task_release(task);
    });
    REQUIRE(all.size() == 9);
    for (const Expected& expected : all) {
        INFO("wait type " << int{expected.type});
        CHECK(expected.info.wait_type == expected.type);
        CHECK(expected.info.owner == expected.owner);
        CHECK(expected.info.context == expected.context);
        CHECK(expected.info.wait_flags == expected.wait_flags);
        CHECK(expected.info.turnstile_context == expected.inheritor);
        CHECK(expected.info.turnstile_flags == expected.flags);
        CHECK(expected.info.turnstile_priority == expected.priority);
        // A request that is queued is behind its port.
        CHECK(expected.info.number_of_hops == (expected.wait_flags != 0 ? 2 : 1));
    }
}

TEST_CASE(
    "a request is two hops from the thread that serves the port while it is queued, then one") {
    std::vector<stackshot::WaitFacts> infos;
    std::uint64_t server_id = 0;
    fake_machine::run([&] {
        const auto port = std::move(ReceiveRight::allocate(kernel_task()).value());
        Holder server(10), first(20), second(30);
        server_id = server.thread().thread_id;
        Message requests[2];
        const auto ask = [&](Holder& client) {
            client.begin([&] {
                Message question;
                const MachMsgReturn result = port.make_send().request(question);
                (void)result;
            });
            await([&] {
                SchedulerGuard guard;
                return client.thread().block_hint == kThreadWaitPortReceive;
            });
        };
        const auto take = [&](Message& request) {
            server.run([&] { std::ignore = port.receive(request); });
        };
        ask(first);
        take(requests[0]);
        infos.push_back(wait_info(first.thread()));
        ask(second);
        infos.push_back(wait_info(second.thread()));
        take(requests[1]);
        infos.push_back(wait_info(second.thread()));
        for (Message& request : requests)
            server.run([&] { std::ignore = reply(request, {}); });
        first.finish();
        second.finish();
    });
    REQUIRE(infos.size() == 3);
    const int hops[] = {1, 2, 1};
    for (std::size_t n = 0; n < infos.size(); n++) {
        CHECK(infos[n].turnstile_flags == STACKSHOT_TURNSTILE_STATUS_THREAD);
        CHECK(infos[n].turnstile_context == server_id);
        CHECK(infos[n].number_of_hops == hops[n]);
    }
}

TEST_CASE(
    "a thread that runs or sleeps waits for nothing, and what cannot be read is told as such") {
    WaitInfoRead running{}, sleeping{}, unreadable{};
    fake_machine::run([&] {
        wait_info(current_thread(), &running);
        Holder sleeper(40);
        sleeper.begin([] { sleep_milliseconds(20); });
        await([&] {
            SchedulerGuard guard;
            return sleeper.thread().deadline != no_deadline;
        });
        wait_info(sleeper.thread(), &sleeping);
        sleeper.finish();
        stackshot::WaitFacts info;
        const Turnstile turnstile;
        unreadable =
            read_thread_wait_info([](std::uint64_t, void*) { return false; }, World::stands,
                                  address_of(&current_thread()),
                                  {1, address_of(&turnstile), kThreadWaitKernelMutex}, info);
    });
    CHECK(running == WaitInfoRead::waits_for_nothing);
    CHECK(sleeping == WaitInfoRead::waits_for_nothing);
    CHECK(unreadable == WaitInfoRead::unreadable);
}

TEST_CASE("a hand-over between any two reads shows the owner before, behind, or a locked mutex") {
    // Two threads wait; the owner gives the mutex back before the n-th read.
    int foreign = 0, locked_without_flag = 0, locked = 0;
    fake_machine::run([&] {
        for (int hand_over_at = 0; hand_over_at < 7; hand_over_at++) {
            Mutex mutex;
            Holder owner(20), next(60), last(40);
            owner.run([&] { mutex.lock(); });
            for (Holder* waiter : {&next, &last}) {
                waiter->begin([&] { mutex.lock(); });
                await_waiting(waiter->thread(), &mutex);
            }
            int reads = 0;
            stackshot::WaitFacts info;
            const auto read = [&](std::uint64_t address, void* to) {
                if (reads++ == hand_over_at) {
                    owner.run([&] { mutex.unlock(); });
                    next.finish();
                }
                SchedulerGuard guard;
                std::memcpy(to, reinterpret_cast<const void*>(address), 16);
                return true;
            };
            stackshot::BlockedThread blocked;
            {
                SchedulerGuard guard;
                blocked = blocked_thread(last.thread());
            }
            const WaitInfoRead end = read_thread_wait_info(
                read, World::moves, address_of(&last.thread()), blocked, info);
            REQUIRE(end == WaitInfoRead::waits);
            if (reads <= hand_over_at) {
                owner.run([&] { mutex.unlock(); });
                next.finish();
            }
            const bool is_locked = info.owner == STACKSHOT_WAITOWNER_MTXSPIN;
            locked += is_locked;
            locked_without_flag +=
                is_locked != (info.turnstile_flags == STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ);
            foreign += !is_locked && info.owner != owner.thread().thread_id &&
                       info.owner != next.thread().thread_id;
            next.run([&] { mutex.unlock(); });
            last.finish();
            last.run([&] { mutex.unlock(); });
        }
    });
    CHECK(foreign == 0);
    CHECK(locked_without_flag == 0);
    CHECK(locked >= 2);
}

TEST_CASE("in the middle of a change a queue is locked, and its owner is not told") {
    stackshot::WaitFacts mutex_info, port_info, sleep_info;
    fake_machine::run([&] {
        const auto look = [](std::uint8_t hint) {
            Turnstile turnstile;
            Holder waiter(40);
            waiter.begin([&] {
                SchedulerGuard guard;
                std::ignore = turnstile.wait(guard, {.event = &turnstile, .block_hint = hint});
            });
            await_waiting(waiter.thread(), &turnstile);
            stackshot::WaitFacts info;
            {
                SchedulerGuard guard;
                const Turnstile::Change change(guard, turnstile);
                turnstile.set_inheritor(guard, &current_thread());
                const WaitInfoRead end = read_thread_wait_info(
                    [](std::uint64_t address, void* to) {
                        std::memcpy(to, reinterpret_cast<const void*>(address), 16);
                        return true;
                    },
                    World::stands, address_of(&waiter.thread()), blocked_thread(waiter.thread()),
                    info);
                (void)end;
                turnstile.set_inheritor(guard, nullptr);
                turnstile.wake_all(guard);
            }
            waiter.finish();
            return info;
        };
        mutex_info = look(kThreadWaitKernelMutex);
        port_info = look(kThreadWaitPortSend);
        sleep_info = look(kThreadWaitSleepWithInheritor);
    });
    CHECK(mutex_info.owner == STACKSHOT_WAITOWNER_MTXSPIN);
    CHECK(port_info.owner == STACKSHOT_WAITOWNER_PORT_LOCKED);
    CHECK(sleep_info.owner == 0);
    for (const stackshot::WaitFacts& info : {mutex_info, port_info, sleep_info}) {
        CHECK(info.turnstile_flags == STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ);
        CHECK(info.turnstile_context == 0);
        CHECK(info.number_of_hops == 0);
    }
}

TEST_CASE(
    "those who wait at the port of a service name it; who asks, names it as what lies behind") {
    stackshot::WaitFacts receiving, sending, asking, unnamed;
    std::string name;
    std::uint64_t domain = 0;
    fake_machine::run([&] {
        const auto port = std::move(ReceiveRight::allocate(kernel_task(), 1).value());
        const auto plain = std::move(ReceiveRight::allocate(kernel_task(), 1).value());
        port.set_service("com.example.service", 3);
        Holder waiter(40), server(10);
        Message request;
        const auto look = [&](std::function<void()> wait, std::uint8_t hint,
                              std::function<void()> release) {
            waiter.begin(std::move(wait));
            await([&] {
                SchedulerGuard guard;
                return waiter.thread().block_hint == hint;
            });
            const stackshot::WaitFacts info = wait_info(waiter.thread());
            if (info.turnstile_port_label != stackshot::PortLabelRef::none) {
                const auto& label = *reinterpret_cast<const PortLabel*>(info.turnstile_port_label);
                name = label.name;
                domain = label.domain_type;
            }
            release();
            waiter.finish();
            return info;
        };
        const auto receive_from = [](const ReceiveRight& from) {
            Message message;
            std::ignore = from.receive(message);
        };
        receiving = look([&] { receive_from(port); }, kThreadWaitPortReceive,
                         [&] { std::ignore = port.make_send().send({}); });
        std::ignore = port.make_send().send({});
        sending = look([&] { std::ignore = port.make_send().send({}); }, kThreadWaitPortSend,
                       [&] { receive_from(port); });
        receive_from(port);
        const auto answer = [&](const ReceiveRight& at) {
            server.run([&] { std::ignore = at.receive(request); });
            server.run([&] { std::ignore = reply(request, {}); });
        };
        const auto ask = [](const ReceiveRight& at) {
            Message question;
            std::ignore = at.make_send().request(question);
        };
        asking = look([&] { ask(port); }, kThreadWaitPortReceive, [&] { answer(port); });
        unnamed = look([&] { ask(plain); }, kThreadWaitPortReceive, [&] { answer(plain); });
    });
    constexpr auto none = stackshot::PortLabelRef::none;
    for (const stackshot::WaitFacts& info : {receiving, sending}) {
        CHECK(info.port_label != none);
        CHECK(info.turnstile_port_label == info.port_label);
    }
    CHECK(asking.port_label == none);
    CHECK(asking.turnstile_port_label == receiving.port_label);
    CHECK(unnamed.turnstile_port_label == none);
    CHECK(name == "com.example.service");
    CHECK(domain == 3);
}

TEST_CASE("who joins a thread waits for it, and the thread inherits the priority") {
    stackshot::WaitFacts info;
    int boosted = 0;
    std::uint64_t joined_id = 0;
    fake_machine::run([&] {
        Semaphore go;
        KernelThreads joined;
        const Thread& thread = joined.start([&] { go.wait(); }, 20);
        joined_id = thread.thread_id;
        Holder joiner(50);
        joiner.begin([&] { joined.join(); });
        await([&] {
            SchedulerGuard guard;
            return joiner.thread().block_hint == kThreadWaitSleepWithInheritor;
        });
        info = wait_info(joiner.thread());
        {
            SchedulerGuard guard;
            boosted = thread.sched_pri;
        }
        go.signal();
        joiner.finish();
    });
    CHECK(info.wait_type == kThreadWaitSleepWithInheritor);
    CHECK(info.owner == joined_id);
    CHECK(info.turnstile_context == joined_id);
    CHECK(info.turnstile_flags == STACKSHOT_TURNSTILE_STATUS_THREAD);
    CHECK(boosted == 50);
}
