#include "kernel/workqueue.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "kernel/semaphore.hpp"
#include "kernel/thread_wait_info.hpp"
#include "test/unit/kernel/holder.hpp"

// Behind the kernel's headers: the CHECK of this file is Catch's.
#include <catch2/catch_test_macros.hpp>

using namespace kernel;

namespace {

/// The threads of `name` that are parked now.
std::vector<const Thread*> parked(const char* name) {
    SchedulerGuard guard;
    std::vector<const Thread*> found;
    for (const Thread* thread = kernel_task().threads.first(); thread != nullptr;
         thread = ThreadList::next(*thread))
        if (thread->block_hint == kcdata::kThreadWaitParkedWorkQueue &&
            std::string_view(thread->name) == name)
            found.push_back(thread);
    return found;
}

}  // namespace

TEST_CASE("a work queue does each piece of work once, from threads and from interrupts") {
    constexpr std::size_t count = 600;
    std::vector<std::atomic<int>> done(count);
    std::vector<WorkItem> items(count);
    WorkQueue queue;
    for (std::size_t index = 0; index < count; index++)
        items[index] = {
            [](void* times) { ++*static_cast<std::atomic<int>*>(times); }, &done[index], {}};
    std::atomic<std::size_t> raised{0};
    fake_machine::run([&] {
        REQUIRE(queue.start(kernel_task(), "work", 4) == kcdata::KERN_SUCCESS);
        KernelThreads threads;
        for (std::size_t part = 0; part < 4; part++)
            threads.start([&, part] {
                for (std::size_t index = part * 100; index < (part + 1) * 100; index++)
                    queue.enqueue(items[index]);
            });
        for (std::size_t index = 400; index < count; index++)
            fake_machine::raise(static_cast<CpuIndex>(index) % fake_machine::cpu_count(),
                                [&, index] {
                                    queue.enqueue(items[index]);
                                    raised++;
                                });
        threads.join();
        await([&] { return raised == count - 400; });
        queue.stop();
    });
    CHECK(std::ranges::all_of(done, [](const auto& times) { return times == 1; }));
}

TEST_CASE("one worker does its work in the order it came") {
    static std::vector<std::size_t> order;
    std::vector<WorkItem> items(50);
    fake_machine::run([&] {
        WorkQueue queue;
        for (std::size_t index = 0; index < items.size(); index++)
            items[index] = {
                [](void* number) { order.push_back(reinterpret_cast<std::size_t>(number)); },
                reinterpret_cast<void*>(index),
                {}};
        REQUIRE(queue.start(kernel_task(), "serial", 1) == kcdata::KERN_SUCCESS);
        for (WorkItem& item : items)
            queue.enqueue(item);
        queue.stop();
    });
    std::vector<std::size_t> expected(items.size());
    std::iota(expected.begin(), expected.end(), std::size_t{0});
    CHECK(order == expected);
}

TEST_CASE("workers without work are parked, and a parked thread has no wait information") {
    std::size_t idle = 0, one_works = 0;
    WaitInfoRead read{};
    fake_machine::run([&] {
        WorkQueue queue;
        struct Scene {
            Semaphore go{}, working{};
        } scene;
        WorkItem item{[](void* argument) {
                          auto& shared = *static_cast<Scene*>(argument);
                          shared.working.signal();
                          shared.go.wait();
                      },
                      &scene,
                      {}};
        REQUIRE(queue.start(kernel_task(), "parking", 3) == kcdata::KERN_SUCCESS);
        await([] { return parked("parking").size() == 3; });
        idle = parked("parking").size();
        stackshot::WaitFacts info;
        read = read_thread_wait_info(
            [](std::uint64_t address, void* to) {
                std::memcpy(to, reinterpret_cast<const void*>(address), 16);
                return true;
            },
            World::stands, reinterpret_cast<std::uint64_t>(parked("parking").front()),
            blocked_thread(*parked("parking").front()), info);
        queue.enqueue(item);
        scene.working.wait();
        one_works = parked("parking").size();
        scene.go.signal();
        queue.stop();
    });
    CHECK(idle == 3);
    CHECK(one_works == 2);
    CHECK(read == WaitInfoRead::waits_for_nothing);
}

TEST_CASE("a work queue without memory for its threads has none, and can be started later") {
    fake_machine::run([] {
        WorkQueue queue;
        fake_machine::fail_allocation(3);  // the second thread
        REQUIRE(queue.start(kernel_task(), "none", 2) == kcdata::KERN_RESOURCE_SHORTAGE);
        REQUIRE(queue.start(kernel_task(), "some", 2) == kcdata::KERN_SUCCESS);
        queue.stop();
    });
}
