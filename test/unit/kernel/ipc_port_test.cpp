#include <atomic>
#include <random>
#include <tuple>
#include <vector>

#include "kernel/condition.hpp"
#include "kernel/ipc_port.hpp"
#include "kernel/mutex.hpp"
#include "kernel/rw_lock.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep_with_inheritor.hpp"
#include "test/unit/kernel/holder.hpp"

// Behind the kernel's headers: the CHECK of this file is Catch's.
#include <catch2/catch_test_macros.hpp>

using namespace kernel;
using enum MachMsgReturn;

namespace {

int sched_pri(const Thread& thread) {
    SchedulerGuard guard;
    return thread.sched_pri;
}

Message message_of(std::int32_t id, std::uint64_t word = 0) {
    return {.id = id, .body = {word}, .reply = {}};
}

}  // namespace

TEST_CASE("messages of one sender come in the order they were sent, none lost and none twice") {
    constexpr int senders = 5, messages = 300;
    int out_of_order = 0, received = 0, failed = 0;
    fake_machine::run([&] {
        const auto port = std::move(ReceiveRight::allocate(kernel_task()).value());
        std::atomic<int> refused{0};
        KernelThreads threads;
        for (int sender = 0; sender < senders; sender++)
            threads.start(
                [&, sender] {
                    const SendRight right = port.make_send();
                    for (std::uint64_t number = 0; number < messages; number++)
                        refused += right.send(message_of(sender, number)) != MACH_MSG_SUCCESS;
                },
                30 + sender % 2);
        std::vector<std::uint64_t> next(senders);
        for (Message message; received < senders * messages; received++) {
            failed += port.receive(message) != MACH_MSG_SUCCESS;
            out_of_order += message.body[0] != next[static_cast<std::size_t>(message.id)]++;
        }
        threads.join();
        Message none;
        failed += port.receive(none, 0) != MACH_RCV_TIMED_OUT;
        failed += refused;
    });
    CHECK(received == senders * messages);
    CHECK(out_of_order == 0);
    CHECK(failed == 0);
}

TEST_CASE("a full queue blocks the sender, which goes on when there is room or gives up") {
    std::vector<MachMsgReturn> results;
    std::vector<std::int32_t> ids;
    fake_machine::run([&] {
        const auto port = std::move(ReceiveRight::allocate(kernel_task(), 2).value());
        const SendRight right = port.make_send();
        for (std::int32_t id : {1, 2})
            results.push_back(right.send(message_of(id), 0));
        results.push_back(right.send(message_of(3), machine::absolute_time() + ms));
        Holder sender(40);
        MachMsgReturn result{};
        sender.begin([&] { result = right.send(message_of(4)); });
        await_waiting(sender.thread(), port.port());
        {
            SchedulerGuard guard;
            REQUIRE(sender.thread().block_hint == kcdata::kThreadWaitPortSend);
        }
        Message message;
        for (int turn = 0; turn < 3; turn++) {
            results.push_back(port.receive(message));
            ids.push_back(message.id);
        }
        sender.finish();
        results.push_back(result);
    });
    CHECK(results == std::vector{MACH_MSG_SUCCESS, MACH_MSG_SUCCESS, MACH_SEND_TIMED_OUT,
                                 MACH_MSG_SUCCESS, MACH_MSG_SUCCESS, MACH_MSG_SUCCESS,
                                 MACH_MSG_SUCCESS});
    CHECK(ids == std::vector{1, 2, 4});
}

TEST_CASE("a request donates its priority to the thread that serves the port, queued or taken") {
    std::vector<int> seen;
    std::vector<std::uint64_t> answers;
    fake_machine::run([&] {
        const auto port = std::move(ReceiveRight::allocate(kernel_task()).value());
        Holder server(10), low(20), high(60);
        Message first, second;
        const auto serve = [&](Message& message) {
            server.run([&] { std::ignore = port.receive(message); });
        };
        const auto answer = [&](Message& request) {
            server.run([&] { std::ignore = reply(request, message_of(0, request.body[0] + 100)); });
        };
        const auto ask = [&](Holder& client, std::uint64_t question) {
            client.begin([&, question] {
                Message message = message_of(1, question);
                const MachMsgReturn result = port.make_send().request(message);
                SchedulerGuard guard;
                answers.push_back(result == MACH_MSG_SUCCESS ? message.body[0] : 0);
            });
            await([&] {
                SchedulerGuard guard;
                return client.thread().block_hint == kcdata::kThreadWaitPortReceive;
            });
        };
        const auto look = [&] { seen.push_back(sched_pri(server.thread())); };
        answers.reserve(2);
        ask(low, 1);
        serve(first);
        look();
        ask(high, 2);  // is queued while the first one is served
        look();
        answer(first);
        low.finish();
        look();
        serve(second);
        look();
        answer(second);
        high.finish();
        look();
    });
    CHECK(seen == std::vector{20, 60, 60, 60, 10});
    CHECK(answers == std::vector<std::uint64_t>{101, 102});
}

TEST_CASE("a sender that waits for room donates its priority to the thread that serves the port") {
    std::vector<int> seen;
    fake_machine::run([&] {
        const auto port = std::move(ReceiveRight::allocate(kernel_task(), 1).value());
        const SendRight right = port.make_send();
        Holder server(10), sender(50);
        Message message;
        std::ignore = right.send(message_of(1));
        server.run([&] { std::ignore = port.receive(message); });
        std::ignore = right.send(message_of(2));
        sender.begin([&] { std::ignore = right.send(message_of(3)); });
        await_waiting(sender.thread(), port.port());
        seen.push_back(sched_pri(server.thread()));
        server.run([&] { std::ignore = port.receive(message); });
        sender.finish();
        seen.push_back(sched_pri(server.thread()));
    });
    CHECK(seen == std::vector{50, 10});
}

TEST_CASE("a request ends when its time is up, when it is dropped and when the port dies") {
    std::vector<MachMsgReturn> results;
    MachMsgReturn late{}, after{};
    fake_machine::run([&] {
        auto port = std::move(ReceiveRight::allocate(kernel_task()).value());
        const SendRight right = port.make_send();
        Message request, taken;
        results.push_back(right.request(request, machine::absolute_time() + ms));
        results.push_back(port.receive(taken));
        late = reply(taken, {});

        Holder client(40);
        const auto ask = [&] {
            client.begin([&] {
                Message message;
                results.push_back(right.request(message));
            });
            await([&] {
                SchedulerGuard guard;
                return client.thread().block_hint == kcdata::kThreadWaitPortReceive;
            });
        };
        ask();
        {
            Message dropped;
            std::ignore = port.receive(dropped);
        }
        client.finish();
        ask();
        port = {};
        client.finish();
        after = right.send({});
    });
    CHECK(results == std::vector{MACH_RCV_TIMED_OUT, MACH_MSG_SUCCESS, MACH_RCV_PORT_DIED,
                                 MACH_RCV_PORT_DIED});
    CHECK(late == MACH_SEND_INVALID_DEST);
    CHECK(after == MACH_SEND_INVALID_DEST);
}

TEST_CASE("a receiver and a sender that wait are told when the port dies") {
    MachMsgReturn received{}, sent{};
    fake_machine::run([&] {
        auto empty = std::move(ReceiveRight::allocate(kernel_task(), 1).value());
        auto full = std::move(ReceiveRight::allocate(kernel_task(), 1).value());
        const SendRight right = full.make_send();
        std::ignore = right.send({});
        Holder receiver(40), sender(40);
        receiver.begin([&] {
            Message message;
            received = empty.receive(message);
        });
        sender.begin([&] { sent = right.send({}); });
        await_waiting(receiver.thread(), empty.port());
        await_waiting(sender.thread(), full.port());
        {
            const ReceiveRight one = std::move(empty);
            const ReceiveRight other = std::move(full);
        }
        receiver.finish();
        sender.finish();
    });
    CHECK(received == MACH_RCV_PORT_DIED);
    CHECK(sent == MACH_SEND_INVALID_DEST);
}

TEST_CASE("no wake-up is lost and no boost is left behind when all of it is used at once") {
    constexpr int workers = 14, turns = 250;
    std::uint64_t guarded = 0, expected = 0;
    std::atomic<int> wrong{0}, ended{0};
    int left_boosted = 0;
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    fake_machine::run([&] {
        Mutex outer, inner;
        RwLock rw_lock;
        Condition changed;
        Semaphore semaphore(2);
        SleepWithInheritor event;
        std::atomic<bool> over{false};
        const auto port = std::move(ReceiveRight::allocate(kernel_task(), 3).value());
        std::atomic<std::uint64_t> additions{0};
        KernelThreads servers, threads;
        for (int server = 0; server < 2; server++)
            servers.start(
                [&] {
                    for (;;) {
                        Message request;
                        if (port.receive(request) != MACH_MSG_SUCCESS || request.id == 0)
                            return;
                        MutexGuard guard(inner);
                        const std::uint64_t answer = request.body[0] + 1;
                        // The client may have given up.
                        if (reply(request, message_of(1, answer)) == MACH_SEND_TIMED_OUT)
                            wrong++;
                    }
                },
                12);
        std::vector<Thread*> all;
        for (int worker = 0; worker < workers; worker++)
            all.push_back(&threads.create(
                [&, worker] {
                    std::minstd_rand random(seed + static_cast<unsigned>(worker));
                    const auto below = [&](unsigned count) { return random() % count; };
                    const SendRight right = port.make_send();
                    for (int turn = 0; turn < turns; turn++) {
                        const std::uint64_t soon =
                            machine::absolute_time() + below(300) * std::uint64_t{1000};
                        switch (below(8)) {
                            case 0: {
                                MutexGuard guard(outer);
                                MutexGuard second(inner);
                                guarded++;
                                additions++;
                                break;
                            }
                            case 1: {
                                Message message = message_of(1, below(1000));
                                const std::uint64_t question = message.body[0];
                                const MachMsgReturn result = right.request(message);
                                wrong +=
                                    result != MACH_MSG_SUCCESS || message.body[0] != question + 1;
                                break;
                            }
                            case 2: {
                                Message message = message_of(1, 7);
                                const MachMsgReturn result = right.request(message, soon);
                                wrong += result == MACH_MSG_SUCCESS && message.body[0] != 8;
                                break;
                            }
                            case 3:
                                if (below(2) == 0) {
                                    rw_lock.lock_exclusive();
                                    rw_lock.downgrade();
                                } else {
                                    rw_lock.lock_shared();
                                }
                                if (below(3) == 0)
                                    sleep_microseconds(below(50));
                                if (rw_lock.upgrade()) {
                                    MutexGuard guard(inner);
                                    guarded++;
                                    additions++;
                                    rw_lock.unlock_exclusive();
                                }
                                break;
                            case 4: {
                                MutexGuard guard(outer);
                                std::ignore = changed.wait_until(outer, soon);
                                break;
                            }
                            case 5:
                                changed.broadcast();
                                event.wakeup_one();
                                break;
                            case 6: {
                                Thread* const other =
                                    all[static_cast<std::size_t>(worker + 1) % workers];
                                std::ignore = event.sleep(other, soon);
                                break;
                            }
                            case 7:
                                semaphore.wait();
                                thread_set_base_priority(current_thread(),
                                                         20 + static_cast<int>(below(30)));
                                fake_machine::poll();
                                semaphore.signal();
                                break;
                        }
                    }
                    // Everybody stays until everybody is done: they are each other's inheritors.
                    ended++;
                    while (!over)
                        sleep_microseconds(200);
                },
                20 + worker % 10));
        threads.start_all();
        await([&] { return ended == workers; });
        for (Thread* thread : all) {
            SchedulerGuard guard;
            left_boosted += thread->sched_pri != thread->base_pri || thread->lock_count != 0;
        }
        over = true;
        threads.join();
        for (int server = 0; server < 2; server++)
            wrong += port.make_send().send(message_of(0)) != MACH_MSG_SUCCESS;
        servers.join();
        expected = additions;
    });
    CHECK(wrong == 0);
    CHECK(left_boosted == 0);
    CHECK(guarded == expected);
}
