#include "kernel/coalition.hpp"

#include <set>
#include <string>
#include <vector>

#include "kcdata/records.hpp"
#include "kernel/ipc_port.hpp"
#include "kernel/task.hpp"
#include "kernel/thread_policy.hpp"
#include "kernel/workqueue.hpp"
#include "test/unit/kernel/holder.hpp"

// Behind the kernel's headers: the CHECK of this file is Catch's.
#include <catch2/catch_test_macros.hpp>

using namespace kernel;

namespace {

std::set<std::uint64_t> coalition_ids() {
    SchedulerGuard guard;
    std::set<std::uint64_t> ids;
    for (const Coalition* coalition = coalition_list().first(); coalition != nullptr;
         coalition = CoalitionList::next(*coalition))
        ids.insert(coalition->id);
    return ids;
}
std::set<std::uint64_t> group_ids() {
    SchedulerGuard guard;
    std::set<std::uint64_t> ids;
    for (const ThreadGroup* group = thread_group_list().first(); group != nullptr;
         group = ThreadGroupList::next(*group))
        ids.insert(group->id);
    return ids;
}

}  // namespace

TEST_CASE(
    "a coalition is there as long as it has tasks, led by the first, its threads in a group") {
    bool leads = false, of_group = false, there = false, still_there = false, gone = false;
    bool kernels = false, defaults = false;
    fake_machine::run([&] {
        const auto before = coalition_ids();
        const auto groups_before = group_ids();
        Coalition& coalition =
            *coalition_create("a name longer than thirty-two characters",
                              kcdata::kCoalitionTermRequested, kcdata::kThreadGroupManaged)
                 .value();
        const std::uint64_t id = coalition.id, group = coalition.thread_group.id;
        Task& first = *task_create("first", 0, &coalition).value();
        Task& second = *task_create("second", 0, &coalition).value();
        Task& other = *task_create("other").value();
        leads = coalition.leader_unique_pid == first.unique_pid && second.coalition_id == id;
        {
            KernelThreads threads(second);
            const Thread& thread = threads.start([] {});
            of_group = thread.thread_group_id == group;
        }
        kernels = kernel_task().coalition == &kernel_coalition() &&
                  current_thread().thread_group_id == kernel_coalition().thread_group.id;
        defaults = other.coalition == &default_coalition() && default_coalition().id != id;
        there = coalition_ids().contains(id) && group_ids().contains(group) &&
                std::string(coalition.thread_group.name, 32) == "a name longer than thirty-two ch";
        coalition_release(coalition);
        task_release(first);
        still_there = coalition_ids().contains(id);
        await([&] {
            SchedulerGuard guard;
            return second.thread_count == 0;
        });
        task_release(second);
        task_release(other);
        gone = coalition_ids() == before && group_ids() == groups_before;
    });
    CHECK(leads);
    CHECK(of_group);
    CHECK(kernels);
    CHECK(defaults);
    CHECK(there);
    CHECK(still_there);
    CHECK(gone);
}

TEST_CASE("policy words are XNU's of version 7, and classes have their priorities and tiers") {
    const ThreadPolicy utility{.qos = ThreadQos::UTILITY};
    CHECK(requested_policy(utility).value() == 3U << 15);
    CHECK(effective_policy(utility).value() == (3U << 13 | 1U << 1));
    CHECK(base_priority(utility, 31) == 20);
    // Background: not above its class and tier, whatever is asked for.
    const ThreadPolicy background{
        .qos = ThreadQos::USER_INTERACTIVE, .darwin_background = true, .io_passive = true};
    CHECK(requested_policy(background).value() == (6U << 15 | 1U << 6 | 1U));
    CHECK(effective_policy(background).value() == (2U << 13 | 1U << 3 | 2U << 1 | 1U));
    CHECK(base_priority(background, 31) == 4);
    const ThreadPolicy maintenance{.qos = ThreadQos::MAINTENANCE, .darwin_background = true};
    CHECK(effective_policy(maintenance).get(thep_io_tier) == 3);
    CHECK(requested_policy({}).value() == 0);
    CHECK(effective_policy({}).value() == 0);
    CHECK(base_priority({}, 77) == 77);
}

TEST_CASE(
    "a task that donates importance is told whom its requests wait for, until they are answered") {
    std::vector<std::int32_t> queued, served, answered, of_others;
    std::int32_t server_pid = 0;
    fake_machine::run([&] {
        Task& server = *task_create("server").value();
        Task& donor = *task_create("donor", kcdata::kTaskIsImpDonor).value();
        Task& other = *task_create("other").value();
        server_pid = server.pid;
        const auto donations = [](const Task& task) {
            SchedulerGuard guard;
            std::vector<std::int32_t> pids;
            for (const ImportanceDonation* donation = task.donations.first(); donation != nullptr;
                 donation = DonationList::next(*donation))
                pids.push_back(donation->pid);
            return pids;
        };
        const auto port = std::move(ReceiveRight::allocate(server).value());
        {
            KernelThreads threads(donor), others(other);
            const auto ask = [&] {
                Message question;
                const auto result = port.make_send().request(question);
                (void)result;
            };
            for (KernelThreads* asking : {&threads, &threads, &others})
                asking->start(ask);
            await([&] { return donations(donor).size() == 2; });
            queued = donations(donor);
            of_others = donations(other);
            for (int n = 0; n < 3; n++) {
                Message request;
                REQUIRE(port.receive(request) == MachMsgReturn::MACH_MSG_SUCCESS);
                if (n == 0)
                    served = donations(donor);
                REQUIRE(reply(request, {}) == MachMsgReturn::MACH_MSG_SUCCESS);
            }
        }
        answered = donations(donor);
        for (Task* task : {&server, &donor, &other})
            task_release(*task);
    });
    CHECK(queued == std::vector{server_pid, server_pid});
    CHECK(served.size() == 2);
    CHECK(answered.empty());
    CHECK(of_others.empty());
}

TEST_CASE("a worker names its queue while it works for it, and queues have serial numbers") {
    const DispatchQueue* working = nullptr;
    bool parked = false, differ = false;
    std::string label;
    fake_machine::run([&] {
        WorkQueue queue, other;
        REQUIRE(queue.start(kernel_task(), "com.example.queue", 1) == kcdata::KERN_SUCCESS);
        REQUIRE(other.start(kernel_task(), "other", 1) == kcdata::KERN_SUCCESS);
        struct Scene {
            Semaphore working{}, go{};
            const Thread* worker = nullptr;
        } scene;
        WorkItem item{[](void* argument) {
                          auto& shared = *static_cast<Scene*>(argument);
                          shared.worker = &current_thread();
                          shared.working.signal();
                          shared.go.wait();
                      },
                      &scene,
                      {}};
        queue.enqueue(item);
        scene.working.wait();
        working = scene.worker->dispatch_queue == &queue.dispatch_queue() ? &queue.dispatch_queue()
                                                                          : nullptr;
        label = queue.dispatch_queue().label;
        differ = queue.dispatch_queue().serial_number != other.dispatch_queue().serial_number;
        scene.go.signal();
        await_waiting(*scene.worker, &queue);
        parked = scene.worker->dispatch_queue == nullptr;
        queue.stop();
        other.stop();
    });
    CHECK(working != nullptr);
    CHECK(label == "com.example.queue");
    CHECK(differ);
    CHECK(parked);
}

TEST_CASE("what the CPUs count is told to the threads that did it, and to their tasks") {
    stackshot::CpuCounters busy{}, lazy{}, task_counters{};
    fake_machine::run([&] {
        Task& task = *task_create("counted").value();
        {
            KernelThreads threads(task);
            threads.start([&] {
                compute(5 * ms);
                sleep_microseconds(100);
                SchedulerGuard guard;
                busy = current_thread().counters;
            });
            threads.start([&] {
                sleep_microseconds(100);
                SchedulerGuard guard;
                lazy = current_thread().counters;
            });
            threads.join();
        }
        await([&] {
            SchedulerGuard guard;
            return task.thread_count == 0;
        });
        {
            SchedulerGuard guard;
            task_counters = task.counters;
        }
        task_release(task);
    });
    // The fake machine's cycles are nanoseconds, with two instructions each.
    CHECK(busy.cycles >= 5 * ms);
    CHECK(busy.instructions == 2 * busy.cycles);
    CHECK(lazy.cycles > 0);
    CHECK(task_counters.cycles >= busy.cycles + lazy.cycles);
}
