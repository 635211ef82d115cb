#include "kernel/workload/scene.hpp"

#include <array>
#include <utility>

#include "kernel/console.hpp"
#include "kernel/format_text.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/sleep.hpp"

namespace kernel::workload {
namespace {

constexpr std::array words = {"amber", "birch", "cedar", "delta", "ember", "fjord",
                              "grove", "haven", "iris",  "jade",  "krill", "lotus",
                              "maple", "north", "onyx",  "pearl", "quill", "raven"};

void sleeps(void*) {
    for (;;)
        sleep_milliseconds(60'000);
}

}  // namespace

Scene::Scene(const char* name, std::uint64_t seed) : random_(seed) {
    console::print("scene: %s seed 0x%lx\n", name, seed);
}

Scene::~Scene() {
    console::print("scene: stands\n");
}

int Scene::between(int low, int high) {
    return low + static_cast<int>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
}

void Scene::shuffle(std::span<std::uint32_t> order) {
    for (std::uint32_t index = 0; index < order.size(); index++) {
        order[index] = index;
        std::swap(order[index], order[random_.below(index + 1)]);
    }
}

Thread& Scene::actor(ThreadEntry entry, void* argument, int priority) {
    char name[Task::max_name + 1];
    for (std::uint64_t bystanders = random_.below(3); bystanders > 0; bystanders--) {
        draw_name(name);
        Task& bystander = make_task(name);
        actor(bystander, sleeps, nullptr, between(10, 60));
        task_release(bystander);
    }
    draw_name(name);
    Task& task = make_task(name);
    Thread& thread = actor(task, entry, argument, priority);
    task_release(task);
    return thread;
}

Thread& Scene::actor(Task& task, ThreadEntry entry, void* argument, int priority) {
    char name[Task::max_name + 1];
    draw_name(name);
    return make_thread(task, entry, argument, {.priority = priority}, "%s", name);
}

void Scene::await_blocked(const Thread& thread, std::uint8_t block_hint) {
    for (;;) {
        {
            SchedulerGuard guard;
            if ((thread.state & kcdata::SS_TH_WAIT) != 0 && thread.block_hint == block_hint)
                return;
        }
        sleep_milliseconds(1);
    }
}

void Scene::waits(const Thread& waiter, const void* object, const Thread* owner) {
    const auto address = reinterpret_cast<std::uint64_t>(object);
    if (owner != nullptr)
        console::print("scene: thread %lu \"%s\" of task %d waits for 0x%lx of thread %lu\n",
                       waiter.thread_id, waiter.name, waiter.task->pid, address, owner->thread_id);
    else
        console::print("scene: thread %lu \"%s\" of task %d waits for 0x%lx\n", waiter.thread_id,
                       waiter.name, waiter.task->pid, address);
}

void Scene::deadlock(std::span<Thread* const> threads) {
    for (std::size_t index = 0; index < threads.size(); index++)
        console::print("scene: deadlock %zu of %zu: thread %lu\n", index + 1, threads.size(),
                       threads[index]->thread_id);
}

void Scene::needs(const Thread& thread, const void* lock) {
    console::print("scene: thread %lu needs 0x%lx all the time\n", thread.thread_id,
                   reinterpret_cast<std::uint64_t>(lock));
}

void Scene::crowd(const void* lock, std::uint32_t least, std::uint32_t most) {
    console::print("scene: %u to %u threads wait for 0x%lx\n", least, most,
                   reinterpret_cast<std::uint64_t>(lock));
}

void HandOver::await_last_owner(std::uint8_t block_hint) {
    Thread* const self = &current_thread();
    const Thread* const last_owner = std::exchange(last_owner_, self);
    if (last_owner != nullptr && last_owner != self)
        Scene::await_blocked(*last_owner, block_hint);
}

void Scene::draw_name(std::span<char> name) {
    format_to(name.data(), name.size(), "%s-%lx", words[random_.below(words.size())],
              random_.below(4096));
}

}  // namespace kernel::workload
